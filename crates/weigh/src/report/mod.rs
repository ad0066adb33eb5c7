//! A summary for people.

pub mod phases;
pub mod text;
