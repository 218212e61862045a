//! The wire: CRD types, schemas, defaults, CEL rules, label and taint constants.
