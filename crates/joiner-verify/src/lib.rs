//! Independent checker: a plan against the rules, sharing no algorithm with the solver.
