//! A summary for people.

pub mod text;
