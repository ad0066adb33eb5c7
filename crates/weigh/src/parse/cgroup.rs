//! The cgroups of a process, and their limits.
//!
//! Memberships are in `/proc/<pid>/cgroup` (cgroups(7)), limits in the cgroup's own directory:
//! `cpu.max` and `memory.max` (cgroup v2), `cpu.cfs_quota_us`, `cpu.cfs_period_us` and
//! `memory.limit_in_bytes` (cgroup v1). All are readable by every user; the root cgroup of v2 has
//! no limit files.
//!
//! What surprises: the path is relative to the reader's cgroup namespace and may begin with `/..`;
//! it ends in ` (deleted)` when the cgroup was removed and the process is a zombie. It may contain
//! colons. A cgroup without a limit is still under the limits of its ancestors.

use super::MalformedFile;
use super::fields::FieldCursor;

/// One cgroup of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership<'a> {
    /// Its controllers, separated by commas (`cpu,cpuacct`); empty for cgroup v2.
    pub controllers: &'a [u8],
    /// Its path below the mount point of its controllers.
    pub path: &'a [u8],
}

impl Membership<'_> {
    /// Whether this is the cgroup v2, the one for all controllers.
    pub fn is_unified(&self) -> bool {
        self.controllers.is_empty()
    }

    /// Whether this cgroup v1 has the controller `name`, such as `memory`.
    pub fn controls(&self, name: &str) -> bool {
        self.controllers.split(|&byte| byte == b',').any(|each| each == name.as_bytes())
    }
}

/// The cgroups listed in the bytes of `/proc/<pid>/cgroup`.
///
/// Ends at a line that is not `number:controllers:path` with its newline: a truncated path would
/// name another cgroup.
pub fn memberships(bytes: &[u8]) -> impl Iterator<Item = Membership<'_>> {
    let mut lines = FieldCursor::new(bytes);
    std::iter::from_fn(move || {
        let line = lines.line().ok()??.strip_suffix(b"\n")?;
        let mut parts = line.splitn(3, |&byte| byte == b':');
        let (_hierarchy, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Membership { controllers, path })
    })
}

/// How many CPUs a cgroup may use, from the bytes of `cpu.max`; `None` is no limit.
pub fn cpu_max(bytes: &[u8]) -> Result<Option<f64>, MalformedFile> {
    if let Some(period) = bytes.strip_prefix(b"max ") {
        FieldCursor::new(period).number("period")?;
        return Ok(None);
    }
    let mut columns = FieldCursor::new(bytes);
    cpus(columns.number("quota")?, columns.number("period")?).map(Some)
}

/// How many CPUs a cgroup v1 may use; `None` is no limit.
///
/// From the bytes of `cpu.cfs_quota_us`, which is -1 without a limit, and of
/// `cpu.cfs_period_us`.
pub fn quota(quota_us: &[u8], period_us: &[u8]) -> Result<Option<f64>, MalformedFile> {
    if quota_us == b"-1\n" {
        return Ok(None);
    }
    let quota = FieldCursor::new(quota_us).number("quota")?;
    cpus(quota, FieldCursor::new(period_us).number("period")?).map(Some)
}

/// The kernel refuses a quota or period below 1 ms, so it never writes 0.
fn cpus(quota: u64, period: u64) -> Result<f64, MalformedFile> {
    match (quota, period) {
        (0, _) => Err(MalformedFile("quota")),
        (_, 0) => Err(MalformedFile("period")),
        _ => Ok(quota as f64 / period as f64),
    }
}

/// A cgroup v1 limit of at least this means no limit.
///
/// cgroup v1 has no keyword for "no limit" and writes the largest number it can hold: 2^63 - 1
/// rounded down to whole pages, 9223372036854771712 with pages of 4 KiB, less with larger ones,
/// 2^63 - 1 or 2^64 - 1 before Linux 3.19. Half of 2^63 is below all of these, and far above the
/// 2^52 bytes (x86) or 2^56 bytes (RISC-V) that any machine can address, so a real limit is never
/// taken for none.
const NO_LIMIT: u64 = 1 << 62;

/// How many bytes a cgroup may use, from `memory.max` and similar files; `None` is no limit.
pub fn bytes_limit(bytes: &[u8]) -> Result<Option<u64>, MalformedFile> {
    if bytes == b"max\n" {
        return Ok(None);
    }
    let limit = FieldCursor::new(bytes).number("limit in bytes")?;
    Ok((limit < NO_LIMIT).then_some(limit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{cut_at_every_byte, mangled, parser_tests};
    use super::*;

    const HYBRID: &[u8] = b"9:name=systemd:/\n4:cpu,cpuacct:/slurm/uid_1000/job_42\n\
        3:memory:/a:b/c\n0::/system.slice/slurmstepd.scope/job_42\n";

    #[test]
    fn cgroup_v1_and_v2_are_listed_and_paths_may_have_colons() {
        let groups: Vec<_> = memberships(HYBRID).collect();
        assert_eq!(groups.len(), 4);
        assert_eq!(groups[1].path, b"/slurm/uid_1000/job_42");
        assert!(groups[1].controls("cpuacct") && !groups[1].controls("cpua"));
        assert_eq!(groups[2].path, b"/a:b/c");
        assert!(groups[3].is_unified() && !groups[0].is_unified());
        assert_eq!(groups[3].path, b"/system.slice/slurmstepd.scope/job_42");
    }

    #[test]
    fn truncated_path_is_not_a_cgroup() {
        let listed = |bytes| Ok(memberships(bytes).collect::<Vec<_>>());
        cut_at_every_byte(HYBRID, listed, |part, whole| whole.starts_with(part));
        assert_eq!(memberships(b"0::/system.sl").count(), 0);
    }

    #[test]
    fn procfs_crate_agrees() {
        use procfs::{FromRead, ProcessCGroups};
        let theirs = ProcessCGroups::from_read(HYBRID).unwrap().0;
        let paths: Vec<_> = memberships(HYBRID).map(|group| group.path.to_vec()).collect();
        let theirs: Vec<_> = theirs.into_iter().map(|group| group.pathname.into_bytes()).collect();
        assert_eq!(paths, theirs);
    }

    #[test]
    fn cpu_limits_are_in_cpus() {
        assert_eq!(cpu_max(b"max 100000\n"), Ok(None));
        assert_eq!(cpu_max(b"150000 100000\n"), Ok(Some(1.5)));
        assert_eq!(quota(b"-1\n", b"100000\n"), Ok(None));
        assert_eq!(quota(b"50000\n", b"100000\n"), Ok(Some(0.5)));
    }

    #[test]
    fn nonsense_limits_are_refused() {
        assert_eq!(cpu_max(b""), Err(MalformedFile("quota")));
        assert_eq!(cpu_max(b"max\n"), Err(MalformedFile("quota")));
        assert_eq!(cpu_max(b"100000 0\n"), Err(MalformedFile("period")));
        assert_eq!(quota(b"-2\n", b"100000\n"), Err(MalformedFile("quota")));
        assert_eq!(quota(b"0\n", b"100000\n"), Err(MalformedFile("quota")));
        assert_eq!(bytes_limit(b"many\n"), Err(MalformedFile("limit in bytes")));
    }

    parser_tests! {
        cut: fn truncated_limit_is_refused() {
            cpu_max, b"max 100000\n" => refused;
            cpu_max, b"150000 100000\n" => refused;
            |cut| quota(cut, b"100000\n"), b"-1\n" => refused;
            |cut| quota(b"50000\n", cut), b"100000\n" => refused;
            bytes_limit, b"1073741824\n" => refused;
            bytes_limit, b"max\n" => refused;
        }
    }

    #[test]
    fn no_limit_has_several_encodings() {
        for none in ["max\n", "9223372036854771712\n", "9223372036854710272\n"] {
            assert_eq!(bytes_limit(none.as_bytes()), Ok(None), "{none}");
        }
        assert_eq!(bytes_limit(b"9223372036854775807\n"), Ok(None));
        assert_eq!(bytes_limit(b"18446744073709551615\n"), Ok(None));
        assert_eq!(bytes_limit(b"2147483648\n"), Ok(Some(1 << 31)));
        assert_eq!(bytes_limit(b"0\n"), Ok(Some(0)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in mangled(HYBRID)) {
            memberships(&bytes).for_each(|group| { group.controls("cpu"); });
            let _ = (cpu_max(&bytes), bytes_limit(&bytes), quota(&bytes, &bytes));
        }
    }
}
