//! solve(&Problem) -> Plan: place pods, shape new nodes, bound the price.
