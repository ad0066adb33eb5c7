//! Tests that could not run here: each leaves a line in a file, and the end of a test run says how
//! many there are.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{root, target};

/// Where tests that cannot run here leave a line each (`weighed::skipped` in the tests).
const VARIABLE: &str = "WEIGH_TEST_SKIPPED";

/// The list of one test run.
pub(crate) struct Skipped {
    list: PathBuf,
}

impl Skipped {
    /// A list with nothing in it.
    pub(crate) fn none_yet() -> Result<Skipped> {
        let list = target().join("skipped-tests.txt");
        std::fs::create_dir_all(target()).with_context(|| target().display().to_string())?;
        std::fs::write(&list, "").with_context(|| list.display().to_string())?;
        Ok(Skipped { list })
    }

    /// Passes the path of the list to tests.
    pub(crate) fn pass_to(&self, tests: &mut Command) {
        tests.env(VARIABLE, &self.list);
    }

    /// How many tests could not run here, and where the reasons are.
    pub(crate) fn summary(&self) -> Result<String> {
        let lines = std::fs::read_to_string(&self.list);
        let lines = lines.with_context(|| self.list.display().to_string())?;
        let shown = self.list.strip_prefix(root()).unwrap_or(&self.list).display();
        Ok(match lines.lines().count() {
            0 => "none skipped".to_owned(),
            number => format!("{number} skipped (reasons in {shown})"),
        })
    }
}
