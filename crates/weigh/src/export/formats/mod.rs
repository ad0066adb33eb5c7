//! Kinds of files, one in each module.

mod csv;
mod orc;
