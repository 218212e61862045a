//! The packer from the outside: edge cases, legality, and the optimum that brute force finds.

mod check;
mod edges;
mod legal;
mod optimum;
mod random;
