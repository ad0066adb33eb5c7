//! How much memory the machine has and how it is used: `/proc/meminfo`.
//!
//! About fifty lines `Key: value kB` (proc_meminfo(5)), readable by every user.
//!
//! What surprises: free memory is not what programs can get, since caches are reclaimable;
//! `available` is (3.14). `cached` contains `shared`, which is not reclaimable. Inside a container
//! it is still the whole machine, unless lxcfs is mounted over the file; the container's limit is
//! in its cgroup.

use super::MalformedFile;
use super::fields::{FieldCursor, kilobytes};

/// The memory of the whole machine, in bytes; `None` is a line this kernel does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meminfo {
    /// Memory the kernel can allocate (`MemTotal`): a little less than is installed.
    pub total: u64,
    /// Memory not used for anything (`MemFree`).
    pub free: u64,
    /// Memory that programs could get without swapping, by the kernel's estimate (`MemAvailable`).
    pub available: Option<u64>,
    /// Cache of raw block devices (`Buffers`).
    pub buffers: Option<u64>,
    /// Cache of files, `shared` included (`Cached`).
    pub cached: Option<u64>,
    /// Shared memory and tmpfs (`Shmem`).
    pub shared: Option<u64>,
    /// Reclaimable kernel structures (`SReclaimable`).
    pub slab_reclaimable: Option<u64>,
    /// Total swap space (`SwapTotal`).
    pub swap_total: Option<u64>,
    /// Swap space not in use (`SwapFree`).
    pub swap_free: Option<u64>,
    /// All huge pages of hugetlbfs, of every size, in use or not (`Hugetlb`, 4.19).
    pub hugetlb: Option<u64>,
}

/// Reads the bytes of `/proc/meminfo`.
pub fn parse(bytes: &[u8]) -> Result<Meminfo, MalformedFile> {
    let (mut total, mut free) = (None, None);
    let (mut available, mut buffers, mut cached, mut shared) = (None, None, None, None);
    let (mut slab_reclaimable, mut swap_total, mut swap_free) = (None, None, None);
    let mut hugetlb = None;

    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (slot, field) = match &line[..colon] {
            b"MemTotal" => (&mut total, "MemTotal"),
            b"MemFree" => (&mut free, "MemFree"),
            b"MemAvailable" => (&mut available, "MemAvailable"),
            b"Buffers" => (&mut buffers, "Buffers"),
            b"Cached" => (&mut cached, "Cached"),
            b"Shmem" => (&mut shared, "Shmem"),
            b"SReclaimable" => (&mut slab_reclaimable, "SReclaimable"),
            b"SwapTotal" => (&mut swap_total, "SwapTotal"),
            b"SwapFree" => (&mut swap_free, "SwapFree"),
            b"Hugetlb" => (&mut hugetlb, "Hugetlb"),
            _ => continue,
        };
        *slot = Some(kilobytes(&line[colon + 1..], field)?);
    }

    Ok(Meminfo {
        total: total.ok_or(MalformedFile("MemTotal"))?,
        free: free.ok_or(MalformedFile("MemFree"))?,
        available,
        buffers,
        cached,
        shared,
        slab_reclaimable,
        swap_total,
        swap_free,
        hugetlb,
    })
}

/// Memory of one NUMA node, in bytes: the line `Node 0 MemTotal:  24682416 kB` of its own `meminfo`
/// under `/sys/devices/system/node`.
pub fn node_total(bytes: &[u8], node: u32) -> Result<u64, MalformedFile> {
    let key = format!("Node {node} MemTotal:");
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        if let Some(value) = line.strip_prefix(key.as_bytes()) {
            return kilobytes(value, "MemTotal");
        }
    }
    Err(MalformedFile("MemTotal"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_at_every_byte, parser_tests};
    use super::*;

    const NODE: &[u8] = b"MemTotal:       24682416 kB\nMemFree:        24052052 kB\n\
        MemAvailable:   24375816 kB\nBuffers:            2792 kB\nCached:           524948 kB\n\
        SwapCached:            0 kB\nSwapTotal:       1048576 kB\nSwapFree:        1000000 kB\n\
        Shmem:             12776 kB\nSReclaimable:      31648 kB\nHugePages_Total:       0\n\
        Hugetlb:            2048 kB\n";

    #[test]
    fn kilobytes_become_bytes() {
        let expected = Meminfo {
            total: 24_682_416 * 1024,
            free: 24_052_052 * 1024,
            available: Some(24_375_816 * 1024),
            buffers: Some(2792 * 1024),
            cached: Some(524_948 * 1024),
            shared: Some(12_776 * 1024),
            slab_reclaimable: Some(31_648 * 1024),
            swap_total: Some(1_048_576 * 1024),
            swap_free: Some(1_000_000 * 1024),
            hugetlb: Some(2048 * 1024),
        };
        assert_eq!(parse(NODE), Ok(expected));
    }

    #[test]
    fn old_kernel_has_no_available_memory() {
        let old = parse(b"MemTotal: 4 kB\nMemFree: 3 kB\n").unwrap();
        assert_eq!((old.total, old.free, old.available), (4096, 3072, None));
        assert_eq!(parse(b"MemTotal: 4 kB\n"), Err(MalformedFile("MemFree")));
        assert_eq!(parse(b""), Err(MalformedFile("MemTotal")));
    }

    #[test]
    fn numa_node_has_its_own_line() {
        let node: &[u8] = b"\nNode 1 MemTotal:       24682416 kB\nNode 1 MemFree: 3 kB\n";
        assert_eq!(node_total(node, 1), Ok(24_682_416 * 1024));
        assert!(node_total(node, 0).is_err() && node_total(b"", 1).is_err());
        cut_at_every_byte(node, |bytes| node_total(bytes, 1), |part, whole| part == whole);
    }

    /// What the procfs crate makes of the same bytes.
    fn agrees(ours: Meminfo, theirs: procfs::Meminfo) {
        assert_eq!((ours.total, ours.free), (theirs.mem_total, theirs.mem_free));
        assert_eq!(ours.available, theirs.mem_available);
        assert_eq!((ours.buffers, ours.cached), (Some(theirs.buffers), Some(theirs.cached)));
        assert_eq!((ours.shared, ours.slab_reclaimable), (theirs.shmem, theirs.s_reclaimable));
        assert_eq!(ours.swap_total, Some(theirs.swap_total));
        assert_eq!(ours.swap_free, Some(theirs.swap_free));
        assert_eq!(ours.hugetlb, theirs.hugetlb);
    }

    parser_tests! {
        cut: fn truncated_file_loses_values_but_changes_none() {
            parse, NODE =>
                keeps(total, free)
                may_lose(
                    available, buffers, cached, shared, slab_reclaimable, swap_total,
                    swap_free, hugetlb
                );
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; NODE
        }

        procfs: fn procfs_crate_agrees() {
            parse, "/proc/meminfo" => agrees;
        }
    }
}
