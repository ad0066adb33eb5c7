//! Tests of the library from the outside.

mod architecture;
