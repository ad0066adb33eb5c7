//! `cargo xtask docs`: the documentation as a static site in target/site, with its links checked.
//!
//! mkdocs takes one directory of pages, and here they are in two places: the root and docs/. They
//! are copied in the layout of the repository, so that a link works on both sides or on none.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, root, target};
use crate::python;

/// Where guides, reference and pictures are.
const DOCS: &str = "docs";

/// The settings of the site: its contents, and which links are checked.
const SETTINGS: &str = "docs/mkdocs.yml";

/// Builds the site, after installing what builds it.
pub(crate) fn run() -> Result<()> {
    build(&python::with_site_builder()?)
}

/// Builds the site with this interpreter. A page without a place in it, a link to a file or
/// heading that does not exist: each is an error.
pub(crate) fn build(python: &Path) -> Result<()> {
    let source = target().join("site-source");
    stage(&root(), &source)?;
    let site = target().join("site");
    command::run(&mut mkdocs(python, &source, &site))?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

fn mkdocs(python: &Path, source: &Path, site: &Path) -> Command {
    let mut mkdocs = Command::new(python);
    // Not --quiet: it drops the warnings before --strict counts them.
    mkdocs.args(["-m", "mkdocs", "build", "--strict", "--config-file"]);
    mkdocs.arg(source.join("mkdocs.yml")).arg("--site-dir").arg(site);
    mkdocs
}

/// Copies settings and pages of a repository into a directory of their own.
fn stage(repository: &Path, source: &Path) -> Result<()> {
    // A page that was removed since must not be found by a link.
    if source.exists() {
        std::fs::remove_dir_all(source).with_context(|| source.display().to_string())?;
    }
    let pages = source.join("pages");
    copy_files(repository, &pages, |name| name.ends_with(".md"))?;
    for directory in ["guides", "reference"] {
        let below = Path::new(DOCS).join(directory);
        copy_files(&repository.join(&below), &pages.join(&below), |name| name.ends_with(".md"))?;
    }
    let is_asset = |name: &str| name.ends_with(".png") || name.ends_with(".css");
    copy_files(&repository.join(DOCS), &pages.join(DOCS), is_asset)?;
    copy(&repository.join(SETTINGS), &source.join("mkdocs.yml"))
}

/// Copies the files of a directory, without those below it, that have such a name.
fn copy_files(from: &Path, to: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in from.read_dir().with_context(|| from.display().to_string())? {
        let path: PathBuf = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_file() && is_wanted(name) {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_laid_out_as_in_the_repository_and_removed_ones_are_gone() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        std::fs::create_dir_all(source.join("pages/docs/guides")).unwrap();
        std::fs::write(source.join("pages/docs/guides/removed.md"), "").unwrap();
        stage(&root(), &source).unwrap();
        for page in
            ["README.md", "docs/guides/tutorial.md", "docs/reference/metrics.md", "docs/page.png"]
        {
            assert!(source.join("pages").join(page).is_file(), "{page}");
        }
        assert!(!source.join("pages/docs/guides/removed.md").exists());
    }
    #[test]
    fn link_to_a_heading_that_does_not_exist_is_an_error() {
        let python = match python::site_builder_found() {
            Ok(python) => python,
            Err(why) => return eprintln!("skipped: {why:#}"),
        };
        let directory = tempfile::tempdir().unwrap();
        let [source, site] = ["source", "site"].map(|name| directory.path().join(name));
        stage(&root(), &source).unwrap();
        let page = source.join("pages/SECURITY.md");
        let text = std::fs::read_to_string(&page).unwrap();
        std::fs::write(&page, text + "\n[link](README.md#no-such-heading)\n").unwrap();
        let error = command::output(&mut mkdocs(&python, &source, &site)).unwrap_err();
        assert!(error.to_string().contains("'#no-such-heading'"), "{error:#}");
    }
}
