//! The catalog's tests, in one program.

mod aws_figures;
mod aws_offerings;
mod expected;
mod query;
