//! `cargo xtask wheel`: the Python package as people install it, and what has to be true of it.
//!
//! One wheel for CPython 3.10 and later (abi3), and one for each free-threaded interpreter that is
//! found, which has no stable ABI yet. How long an import takes is printed beside its goal and
//! decides the outcome of this command only: no test depends on the speed of a machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, target};
use crate::interpreters::Interpreter;
use crate::{package, python};

/// What is done with the wheel.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Also run the tests on every interpreter, and those beside the tools that weigh.compat replaces
    #[arg(long)]
    test: bool,
    /// Profile of the build; dev is quicker to build, and too large and slow to judge
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Where wheels are, below target/.
const WHEELS: &str = "wheels";

/// Environments of the interpreters, below target/, and what they have.
const ENVIRONMENTS: &str = "wheel-python";
const PACKAGES: &str = "python/tests/versions.txt";

/// What the abi3 wheel is for.
const TAG: &str = "cp310-abi3";

/// At most so large: two copies of the library, in the module and in the program.
const LARGEST: u64 = 32 << 20;

/// At most so many milliseconds for `import weigh`, the median of so many.
const SLOWEST_IMPORT: f64 = 30.0;
const IMPORTS: usize = 21;

const IMPORT: &str = "import time; began = time.perf_counter(); import weigh; \
                      print((time.perf_counter() - began) * 1e3)";

/// What a wheel has, besides the modules in Python.
const FILES: [&str; 6] = [
    "weigh/_native.",
    "weigh/_native.pyi",
    "weigh/py.typed",
    ".data/scripts/weigh",
    "licenses/LICENSE-MIT",
    "licenses/NOTICE",
];

/// Builds and checks the wheels, and runs their tests if that is wanted.
pub(crate) fn run(options: &Options) -> Result<()> {
    let tools = python::with_package_tools()?;
    let interpreters = Interpreter::all();
    println!("interpreters: {}", Interpreter::names(&interpreters));
    let directory = target().join(WHEELS);
    if directory.exists() {
        std::fs::remove_dir_all(&directory).with_context(|| directory.display().to_string())?;
    }
    let stable = build(&tools, &directory, &options.profile)?;
    check(&tools, &stable, TAG, &options.profile)?;
    let mut slow = Vec::new();
    for interpreter in &interpreters {
        let name = format!("{ENVIRONMENTS}/{}", interpreter.name());
        let python = python::with_file_of(&interpreter.path, &name, PACKAGES)?;
        let wheel = if interpreter.is_free_threaded {
            let wheel = free_threaded(&python, &directory, &options.profile)?;
            check(&tools, &wheel, &interpreter.free_threaded_tag(), &options.profile)?;
            wheel
        } else {
            stable.clone()
        };
        install(&python, &wheel)?;
        let milliseconds = import_time(&python)?;
        println!(
            "{}: import weigh takes {milliseconds:.1} ms, the median of {IMPORTS}; at most \
             {SLOWEST_IMPORT} ms",
            interpreter.name()
        );
        slow.extend((milliseconds > SLOWEST_IMPORT).then(|| interpreter.name()));
        if options.test {
            command::run(&mut package::pytest(&python, &[]))?;
        }
    }
    if !interpreters.iter().any(|one| one.is_free_threaded) {
        println!("no free-threaded wheel: no such interpreter is on PATH, of pyenv or of uv");
    }
    if options.test {
        install(&tools, &stable)?;
        python::with_suite(&tools)?;
        command::run(&mut package::pytest(&tools, &["-s", "-m", "not soak"]))?;
        command::run(&mut package::pytest(&tools, &["-s", "-m", "soak"]))?;
        package::check_types(&tools)?;
    }
    ensure!(slow.is_empty(), "import weigh takes too long on {}", slow.join(", "));
    Ok(())
}

/// Builds a wheel with the tools of an environment, for PyPI.
fn build(python: &Path, directory: &Path, profile: &str) -> Result<PathBuf> {
    let wheels = directory.to_string_lossy().into_owned();
    let mut pip = package::build(python, &["wheel", "--wheel-dir", &wheels, "."])?;
    pip.env("WEIGH_WHEEL_PROFILE", profile).env("MATURIN_PEP517_ARGS", "--compatibility pypi");
    let before = wheels_in(directory);
    command::run(&mut pip)?;
    let made = wheels_in(directory).into_iter().find(|wheel| !before.contains(wheel));
    made.context("pip has built no new wheel")
}

/// Builds a wheel with an interpreter that has nothing but pip yet.
fn free_threaded(python: &Path, directory: &Path, profile: &str) -> Result<PathBuf> {
    let mut pip = command::at_root(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "maturin==1.16.*"]);
    command::run(&mut pip)?;
    build(python, directory, profile)
}

fn wheels_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "whl"))
        .collect()
}

/// Tags, files, libraries and size of a wheel.
fn check(tools: &Path, wheel: &Path, tag: &str, profile: &str) -> Result<()> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((_, platform)) = name.trim_end_matches(".whl").split_once(&format!("-{tag}-")) else {
        bail!("{name} is not for {tag}");
    };
    let (files, _) =
        command::output(command::at_root(tools).args(["-m", "zipfile", "-l"]).arg(wheel))?;
    for file in FILES {
        ensure!(files.contains(file), "{name} has no {file}:\n{files}");
    }
    ensure!(
        !files.contains("entry_points.txt") || !has_console_script(tools, wheel)?,
        "{name}: a console script"
    );
    let mut auditwheel = command::at_root(tools.with_file_name("auditwheel"));
    let (shown, _) = command::output(auditwheel.arg("show").arg(wheel))?;
    println!("{}", shown.trim());
    ensure!(shown.contains(platform), "{name}: auditwheel finds another platform than {platform}");
    let size = std::fs::metadata(wheel).with_context(|| wheel.display().to_string())?.len();
    println!("{name}: {:.1} MiB", size as f64 / f64::from(1 << 20));
    ensure!(profile != "release" || size <= LARGEST, "{name} has more than {} MiB", LARGEST >> 20);
    Ok(())
}

/// Whether the command is a script in Python, which would start an interpreter around what is
/// measured.
fn has_console_script(tools: &Path, wheel: &Path) -> Result<bool> {
    let script = "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); \
                  print(*(z.read(n).decode() for n in z.namelist() if n.endswith('entry_points.txt')))";
    let (entries, _) = command::output(command::at_root(tools).args(["-c", script]).arg(wheel))?;
    Ok(entries.contains("console_scripts"))
}

/// Installs a wheel in place of any other.
fn install(python: &Path, wheel: &Path) -> Result<()> {
    let mut pip = command::at_root(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    command::run(pip.arg("--force-reinstall").arg(wheel))
}

/// Milliseconds for an import, files in the cache.
fn import_time(python: &Path) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..IMPORTS {
        let (printed, _) = command::output(command::at_root(python).args(["-c", IMPORT]))?;
        times.push(printed.trim().parse::<f64>().with_context(|| printed.clone())?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[IMPORTS / 2])
}
