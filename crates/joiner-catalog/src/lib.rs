//! The built-in EC2 table: figures, labels, overhead formulas and the spot price model.
