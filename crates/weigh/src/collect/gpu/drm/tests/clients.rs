//! What processes have of a GPU: by their open files, and by KFD.

use super::*;

const SOLVER: ProcessId = ProcessId { pid: 7, started: 70 };
const CHILD: ProcessId = ProcessId { pid: 8, started: 80 };

/// The file of a client, and a link to its device.
fn with_client(fake: FakeHost, pid: u32, descriptor: u32, content: &str) -> FakeHost {
    fake.proc(&format!("{pid}/stat"), "")
        .proc_link(&format!("{pid}/fd/{descriptor}"), "/dev/dri/renderD128")
        .proc(&format!("{pid}/fdinfo/{descriptor}"), content)
}

fn client(number: u32, worked: u64) -> String {
    format!(
        "drm-driver:\tamdgpu\ndrm-client-id:\t{number}\ndrm-pdev:\t0000:41:00.0\n\
         drm-memory-vram:\t100 KiB\ndrm-engine-gfx:\t{worked} ns\n"
    )
}

#[test]
fn client_counts_once_for_the_oldest_process() {
    let mut fake = machine();
    for (pid, descriptor) in [(8, 3), (7, 3), (7, 4)] {
        fake = with_client(fake, pid, descriptor, &client(57, 1));
    }
    let fake = with_client(fake, 8, 9, &client(58, 1));
    let mut run = PolledRun::of(&fake);
    run.poll(&[CHILD, SOLVER]).outcome.as_ref().unwrap();
    let memory: Vec<_> = run.shares().iter().map(|(_, pid, row)| (*pid, row.memory)).collect();
    assert_eq!(memory, [(7, Some(102_400)), (8, Some(102_400))]);
    let processes: Vec<_> =
        run.devices::<GpuActivity>().iter().map(|(_, row)| row.processes).collect();
    assert_eq!(processes, [Some(2), Some(0)]);
}

#[test]
fn process_that_only_has_a_gpu_open_does_not_use_it() {
    let open = client(57, 0);
    let nothing = client(58, 0).replace("100 KiB", "0 KiB");
    let fake = with_client(with_client(machine(), 7, 3, &open), 8, 3, &nothing);
    let mut run = PolledRun::of(&fake);
    run.poll(&[SOLVER, CHILD]).outcome.as_ref().unwrap();
    let pids: Vec<_> = run.shares().iter().map(|(_, pid, _)| *pid).collect();
    assert_eq!(pids, [7], "the other has no memory at all");
    let processes = |run: &PolledRun| run.devices::<GpuActivity>()[0].1.processes;
    assert_eq!(processes(&run), Some(0), "page tables alone are no use of it");
    fake.set_proc("8/fdinfo/3", &client(58, 5).replace("100 KiB", "0 KiB"));
    assert_eq!(processes(run.poll(&[])), Some(1));
    fake.set_proc("7/fdinfo/3", &open.replace("100 KiB", "100 MiB"));
    assert_eq!(processes(run.poll(&[])), Some(2));
}

/// Utilization of the graphics engine by a process, polled once a second.
fn utilization(clients: &[String]) -> Vec<Option<f64>> {
    let fake = with_client(machine(), 7, 3, &clients[0]);
    let mut run = PolledRun::of(&fake);
    let shares = clients.iter().enumerate().map(|(poll, content)| {
        fake.set_proc("7/fdinfo/3", content);
        let started: &[_] = if poll == 0 { &[SOLVER] } else { &[] };
        run.poll(started).shares()[0].2.utilization
    });
    shares.collect()
}

#[test]
fn engine_time_becomes_a_share_of_elapsed_time() {
    let counts = [0, 250_000_000, 9_000_000_000].map(|worked| client(57, worked));
    assert_eq!(utilization(&counts), [None, Some(0.25), Some(1.0)]);
}

#[test]
fn counter_that_goes_back_counts_again_above_its_maximum() {
    let millions = [0, 250, 100, 200, 350, 350];
    let counts = millions.map(|worked| client(57, worked * 1_000_000));
    let shares = [None, Some(0.25), Some(0.0), Some(0.0), Some(0.1), Some(0.0)];
    assert_eq!(utilization(&counts), shares);
}

#[test]
fn engine_without_a_counter_before_was_unused() {
    let idle = client(57, 0).replace("drm-engine-gfx:\t0 ns\n", "");
    let counts = [idle.clone(), idle, client(57, 400_000_000), client(57, 500_000_000)];
    assert_eq!(utilization(&counts), [None, None, Some(0.4), Some(0.1)]);
    let begun = [client(57, 400_000_000), client(57, 500_000_000)];
    assert_eq!(utilization(&begun), [None, Some(0.1)], "no poll before");
}

#[test]
fn cycles_of_a_reset_clock_are_unknown_until_the_next_poll() {
    let cycles = [(0, 5000), (500, 7000), (600, 100), (700, 1100)].map(|(worked, all)| {
        let idle = client(57, 0).replace("drm-engine-gfx:\t0 ns\n", "");
        format!("{idle}drm-cycles-rcs:\t{worked}\ndrm-total-cycles-rcs:\t{all}\n")
    });
    assert_eq!(utilization(&cycles), [None, Some(0.25), None, Some(0.1)]);
}

#[test]
fn descriptor_that_is_another_file_now_is_no_client() {
    let fake = with_client(machine(), 7, 3, &client(57, 0));
    let mut run = PolledRun::of(&fake);
    assert_eq!(run.poll(&[SOLVER]).shares().len(), 1);
    fake.set_proc("7/fdinfo/3", "drm-client-id:\tgarbage\n");
    assert_eq!(run.poll(&[]).shares(), [], "garbage costs one poll");
    fake.set_proc("7/fdinfo/3", &client(57, 0));
    assert_eq!(run.poll(&[]).shares().len(), 1);
    fake.set_proc("7/fdinfo/3", "pos:\t0\n");
    assert_eq!(run.poll(&[]).shares(), []);
    fake.set_proc("7/fdinfo/3", &client(57, 0));
    assert_eq!(run.poll(&[]).shares(), [], "listed when open files change");
    assert_eq!(run.poll(&[SOLVER]).shares().len(), 1);
}

#[test]
fn process_with_unreadable_files_makes_the_count_unknown() {
    let fake = with_client(with_client(machine(), 7, 3, &client(57, 1)), 8, 3, &client(58, 1));
    fake.deny_proc("8/fd");
    let mut run = PolledRun::of(&fake);
    as_unprivileged(|| run.tick(&[SOLVER, CHILD]));
    assert_eq!(run.devices::<GpuActivity>()[0].1.processes, None);
    assert_eq!(run.shares().len(), 1, "the others are known");
    fake.remove_proc("8");
    assert_eq!(run.poll(&[]).devices::<GpuActivity>()[0].1.processes, Some(1));
}

const STATUS: &str = "class/drm/card0/device/power/runtime_status";

/// A machine with a GPU of xe.
fn machine_of_xe(status: &str) -> FakeHost {
    let uevent = "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0\n";
    FakeHost::new()
        .sys("class/drm/card0/device/uevent", uevent)
        .sys("class/drm/renderD128/device/uevent", uevent)
        .sys(STATUS, status)
}

fn client_of_xe(worked: u64, all: u64) -> String {
    format!(
        "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\n\
         drm-resident-vram0:\t200 KiB\ndrm-cycles-rcs:\t{worked}\ndrm-total-cycles-rcs:\t{all}\n"
    )
}

#[test]
fn client_of_a_suspended_gpu_is_not_read_where_that_wakes_it_up() {
    let fake = with_client(machine_of_xe("active\n"), 7, 3, &client_of_xe(100, 1000));
    let mut run = PolledRun::of(&fake);
    let share = |run: &PolledRun| {
        let (_, _, row) = run.shares()[0];
        (row.memory, row.utilization)
    };
    let memory = Some(204_800);
    assert_eq!(share(run.poll(&[SOLVER])), (memory, None));
    fake.set_proc("7/fdinfo/3", &client_of_xe(350, 2000));
    assert_eq!(share(run.poll(&[])), (memory, Some(0.25)));
    fake.set_sys(STATUS, "suspended\n");
    fake.set_proc("7/fdinfo/3", "reading this wakes it up");
    assert_eq!(share(run.poll(&[])), (memory, None), "when it was suspended is not known");
    assert_eq!(share(run.poll(&[])), (memory, Some(0.0)));
    assert_eq!(share(run.poll(&[SOLVER])), (memory, Some(0.0)), "other files changed");
    fake.set_sys(STATUS, "active\n");
    fake.set_proc("7/fdinfo/3", &client_of_xe(900, 9000));
    assert_eq!(share(run.poll(&[])), (memory, None), "nor when it woke up");
    fake.set_proc("7/fdinfo/3", &client_of_xe(1000, 10_000));
    assert_eq!(share(run.poll(&[])), (memory, Some(0.1)));
}

#[test]
fn client_of_an_always_suspended_gpu_is_listed_without_values() {
    let fake = with_client(machine_of_xe("suspended\n"), 7, 3, &client_of_xe(100, 1000));
    let mut run = PolledRun::of(&fake);
    run.poll(&[SOLVER]);
    let (_, pid, share) = run.shares()[0];
    assert_eq!((pid, share), (7, GpuProcessUsage::default()));
    assert_eq!(run.devices::<GpuActivity>()[0].1.processes, Some(1));
    fake.remove_proc("7");
    assert_eq!(run.poll(&[]).devices::<GpuActivity>()[0].1.processes, Some(0));
}

/// A machine whose first GPU computes for a process, by KFD.
fn computing(namespace: &str) -> FakeHost {
    let own = std::process::id();
    let stat = "7 (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 70 0 0 0\n";
    let nodes = "class/kfd/kfd/topology/nodes";
    with_client(machine(), 7, 3, &client(57, 0))
        .proc("7/stat", stat)
        .proc_link("self", &own.to_string())
        .proc_link(&format!("{own}/ns/pid"), namespace)
        .sys(&format!("{nodes}/0/gpu_id"), "0\n")
        .sys(&format!("{nodes}/0/properties"), "simd_count 0\nlocation_id 0\ndomain 0\n")
        .sys(&format!("{nodes}/1/gpu_id"), "4711\n")
        .sys(
            &format!("{nodes}/1/properties"),
            "simd_count 440\nsimd_per_cu 4\nlocation_id 16640\ndomain 0\n",
        )
        .sys("class/kfd/kfd/proc/7/vram_4711", "900000\n")
        .sys("class/kfd/kfd/proc/7/stats_4711/cu_occupancy", "55\n")
        .sys("class/kfd/kfd/proc/9/vram_4711", "300000\n")
}

#[test]
fn compute_process_has_the_larger_of_both_memories_and_an_occupancy() {
    let fake = computing("pid:[4026531836]");
    let mut run = PolledRun::of(&fake);
    run.poll(&[SOLVER]).outcome.as_ref().unwrap();
    let (gpu, pid, share) = run.shares()[0].clone();
    assert_eq!((gpu.as_str(), pid), ("amd0", 7));
    assert_eq!((share.memory, share.occupancy), (Some(900_000), Some(0.5)));
    let (_, activity) = run.devices::<GpuActivity>()[0];
    let counts = (activity.processes, activity.processes_unknown);
    assert_eq!(counts, (Some(2), Some(1)), "pid 9 is not in /proc");
}

#[test]
fn in_a_container_processes_are_found_by_files_and_not_by_pids() {
    let fake = computing("pid:[4026532000]");
    let mut run = PolledRun::of(&fake);
    run.poll(&[SOLVER]).outcome.as_ref().unwrap();
    assert_eq!(run.shares()[0].2.memory, Some(102_400));
    assert_eq!(run.devices::<GpuActivity>()[0].1.processes_unknown, Some(0));
}

#[test]
fn occupancy_is_read_for_processes_of_the_run_alone() {
    let stat = "10 (python) S 1 10 10 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 0\n";
    let fake = computing("pid:[4026531836]")
        .proc("10/stat", stat)
        .sys("class/kfd/kfd/proc/10/vram_4711", "500000\n")
        .sys("class/kfd/kfd/proc/10/stats_4711/cu_occupancy", "11\n");
    let mut run = PolledRun::of(&fake);
    run.poll(&[SOLVER]).outcome.as_ref().unwrap();
    let shares: Vec<_> =
        run.shares().iter().map(|(_, pid, row)| (*pid, row.memory, row.occupancy)).collect();
    assert_eq!(shares, [(7, Some(900_000), Some(0.5)), (10, Some(500_000), None)]);
}
