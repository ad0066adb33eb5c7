//! Environment variables, read by name. The environment is never recorded.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variable by which a command finds the recording it runs in.
pub const RUN_VARIABLE: &str = "WEIGH_RUN";

/// The variable by which a script finds the pipe for its phases and marks.
pub const INBOX_VARIABLE: &str = "WEIGH_INBOX";

/// The recording this process runs in, if it is part of a run.
pub fn running_recording() -> Option<PathBuf> {
    variable(RUN_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// One variable of this process's environment.
#[expect(clippy::disallowed_methods, reason = "host is the access to the machine")]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Variables that batch systems set for the processes of a job.
const JOB_VARIABLES: [(&str, &str); 3] =
    [("SLURM_JOB_ID", "slurm"), ("PBS_JOBID", "pbs"), ("OAR_JOB_ID", "oar")];

/// The batch system whose job this process is part of, if any.
pub fn scheduler() -> Option<&'static str> {
    JOB_VARIABLES.iter().find(|(name, _)| variable(name).is_some()).map(|(_, scheduler)| *scheduler)
}
