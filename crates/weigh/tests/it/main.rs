//! Tests of the library from the outside.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests read the repository")]

mod architecture;
