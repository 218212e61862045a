//! Parse wire objects into the model and build snapshots.
