//! CPU of a tick of everything that is measured of the machine, on a large one.
//!
//! The machine is made of files: 8 disks, 8 network devices, 128 CPUs in two sockets, four
//! InfiniBand ports. Reading a file on a disk costs about as much as reading one of the kernel
//! once it is open; the work of the kernel to produce its contents is not included.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use weigh::catalog::groups;
use weigh::collect::{self, Collector};
use weigh::host::{Host, clock};
use weigh::model::Tick;
use weigh::model::settings::Settings;

use super::Bench;
use super::table::{Line, median, time};

/// What a tick of all of them may cost.
const AT_MOST: f64 = 1e-3;
const CPUS: u32 = 128;
const DEVICES: u64 = 8;
const PORTS: u64 = 4;

/// Where the machine is.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The root of its files
    root: std::path::PathBuf,
}

/// CPU of a tick, as a release build of ourselves finds it.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let root = bench.fresh("machine");
    make(&root)?;
    let mut costs = Vec::new();
    for _ in 0..bench.repeats() {
        let found = Command::new(&bench.xtask).arg("node").arg(&root).output()?;
        let found = String::from_utf8(found.stdout)?;
        costs.push(found.trim().parse::<f64>().with_context(|| format!("it printed {found:?}"))?);
    }
    let cost = median(costs);
    let what = format!("tick of the machine: {DEVICES} disks, {DEVICES} NICs, {CPUS} CPUs");
    Ok(vec![Line::new(what, time(cost)).goal(format!("≤ {}", time(AT_MOST)), cost <= AT_MOST)])
}

/// Ticks a second apart over the machine at a root; prints the CPU time of one.
pub(crate) fn run(options: &Options) -> Result<()> {
    const TICKS: u64 = 300;
    let host = Host::at(&options.root)?;
    let settings = Settings { skip: vec!["process".into()], ..Settings::default() };
    let sources = collect::select(&host, &settings).sources;
    let mut tick = Tick::new(&groups(sources.iter().copied()));
    let makers = sources.iter().filter_map(|source| collect::provider(source.id)?.collector);
    let mut collectors: Vec<Box<dyn Collector>> = makers.map(|make| make(&settings)).collect();
    let mut sample = |second| -> Result<()> {
        tick.begin(Duration::from_secs(second));
        collectors.iter_mut().try_for_each(|collector| {
            Ok(collector.sample(&collect::Context::of(&host), &mut tick)?)
        })
    };
    sample(0)?;
    let before = clock::thread_cpu();
    (1..=TICKS).try_for_each(&mut sample)?;
    println!("{}", (clock::thread_cpu() - before).as_secs_f64() / TICKS as f64);
    Ok(())
}

/// Writes the files of the machine.
fn make(root: &Path) -> Result<()> {
    let put = |path: String, content: String| -> Result<()> {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().context("a path")?)?;
        std::fs::write(&path, content).with_context(|| path.display().to_string())
    };
    let ticks = |cpu: String| format!("cpu{cpu} 88120 12 9120 771203 120 0 331 0 0 0\n");
    let cpus = (0..CPUS).map(|cpu| ticks(cpu.to_string()));
    let stat: String = std::iter::once(ticks(" ".to_owned())).chain(cpus).collect();
    let interrupts = "0 ".repeat(2000);
    put("proc/stat".into(), format!("{stat}intr 12 {interrupts}\nctxt 9\nprocesses 5\n"))?;
    put("proc/meminfo".into(), "MemTotal: 9 kB\nMemFree: 5 kB\nMemAvailable: 7 kB\n".into())?;
    put("proc/self/status".into(), "VmHWM:\t 9 kB\n".into())?;
    let nic = |nic| {
        format!("  eth{nic}: 981223044121 1182209121 0 12 0 0 0 9 77122098 98812 0 0 0 0 0 0\n")
    };
    let heading = "Inter-| Receive | Transmit\n face |bytes packets|bytes packets\n".to_owned();
    put("proc/self/net/dev".into(), (0..DEVICES).fold(heading, |text, one| text + &nic(one)))?;
    put("proc/self/net/snmp".into(), "Tcp: OutSegs RetransSegs\nTcp: 9 2\n".into())?;
    let disk =
        |disk| format!("259 {disk} nvme{disk}n1 99 8 7712 33 44 5 6612 77 0 880 910 0 0 0 0 3 2\n");
    put("proc/diskstats".into(), (0..DEVICES).map(disk).collect())?;
    let vmstat: String = (0..180).map(|line| format!("nr_something_{line} 881203\n")).collect();
    put("proc/vmstat".into(), vmstat + "pswpin 1\npswpout 2\noom_kill 0\n")?;
    for file in ["cpu", "memory", "io"] {
        let line = |word| format!("{word} avg10=0.00 avg60=0.00 avg300=0.00 total=9912033\n");
        put(format!("proc/pressure/{file}"), line("some") + &line("full"))?;
    }
    for device in 0..DEVICES {
        put(format!("sys/class/net/eth{device}/type"), "1\n".into())?;
        put(format!("sys/block/nvme{device}n1/size"), "3750748848\n".into())?;
    }
    for (zone, name) in [("0", "package-0"), ("0:0", "dram"), ("1", "package-1"), ("1:0", "dram")] {
        let zone = format!("sys/class/powercap/intel-rapl:{zone}");
        put(format!("{zone}/name"), format!("{name}\n"))?;
        put(format!("{zone}/energy_uj"), "118822093312\n".into())?;
        put(format!("{zone}/max_energy_range_uj"), "262143328850\n".into())?;
    }
    for port in 0..PORTS {
        let port = format!("sys/class/infiniband/mlx5_{port}/ports/1");
        put(format!("{port}/state"), "4: ACTIVE\n".into())?;
        put(format!("{port}/rate"), "200 Gb/sec (4X HDR)\n".into())?;
        let errors = ["port_xmit_wait", "port_rcv_errors", "port_xmit_discards", "link_downed"];
        let traffic = ["rcv_data", "xmit_data", "rcv_packets", "xmit_packets"];
        let traffic = traffic.map(|counter| format!("port_{counter}"));
        for counter in traffic.into_iter().chain(errors.map(str::to_owned)) {
            put(format!("{port}/counters/{counter}"), "88120993312044\n".into())?;
        }
    }
    put("sys/devices/system/cpu/online".into(), format!("0-{}\n", CPUS - 1))?;
    for cpu in 0..CPUS {
        let at = format!("sys/devices/system/cpu/cpu{cpu}");
        put(format!("{at}/cpufreq/scaling_cur_freq"), "2900000\n".into())?;
        put(format!("{at}/topology/physical_package_id"), format!("{}\n", cpu * 2 / CPUS))?;
        let core = cpu % (CPUS / 2);
        put(
            format!("{at}/topology/thread_siblings_list"),
            format!("{core},{}\n", core + CPUS / 2),
        )?;
        put(format!("{at}/thermal_throttle/core_throttle_count"), "3\n".into())?;
        put(format!("{at}/thermal_throttle/package_throttle_count"), "5\n".into())?;
    }
    Ok(())
}
