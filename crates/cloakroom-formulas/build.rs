//! Checks the files of the catalog and writes them as Rust statics. A broken file stops the build.

#[path = "src/document.rs"]
mod document;
#[path = "src/vocabulary.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the crate's own words, of which files use a part"
)]
mod vocabulary;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use document::{Document, FieldDocument};

fn main() -> ExitCode {
    // Cargo runs this in the folder of the package, wherever that lies by now.
    let folder = Path::new("../../formulas");
    println!("cargo::rerun-if-changed={}", folder.display());
    let written = read(folder).and_then(|formulas| write(&formulas));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(broken) => {
            for broken in broken {
                println!("cargo::error={broken}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Every formula of the folder, by id; or all that is wrong with any of them.
fn read(folder: &Path) -> Result<Vec<Document>, Vec<String>> {
    let unreadable = |error: std::io::Error| vec![format!("formulas: {error}")];
    let (mut formulas, mut all_broken) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| vec![format!("{}: {error}", path.display())])?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match document::read(&name, &text) {
            Ok(formula) => formulas.push(formula),
            Err(broken) => all_broken.extend(broken.iter().map(ToString::to_string)),
        }
    }
    formulas.sort_by(|one, other| one.id.cmp(&other.id));
    match all_broken.is_empty() {
        true => Ok(formulas),
        false => Err(all_broken),
    }
}

fn write(formulas: &[Document]) -> Result<(), Vec<String>> {
    let folder = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let folder = folder.ok_or_else(|| vec!["cargo names no OUT_DIR".to_owned()])?;
    let text = catalog(formulas).map_err(|error| vec![error.to_string()])?;
    std::fs::write(folder.join("catalog.rs"), text).map_err(|error| vec![error.to_string()])
}

fn catalog(formulas: &[Document]) -> Result<String, std::fmt::Error> {
    let mut text = "/// Every formula, by id.\npub static FORMULAS: &[Formula] = &[\n".to_owned();
    for formula in formulas {
        let Document {
            id,
            display_name,
            method,
            fields,
            supported_currencies: currencies,
            supported_countries: countries,
            supported_features: features,
        } = formula;
        write!(
            text,
            "Formula {{ id: {id:?}, display_name: {display_name:?}, method: Method::{method:?}, \
             supported_currencies: &{currencies:?}, supported_countries: &{countries:?}, \
             supported_features: {features:?}, fields: &["
        )?;
        for field in fields {
            let FieldDocument {
                key,
                display_name,
                required,
                format,
                secret,
            } = field;
            write!(
                text,
                "Field {{ key: {key:?}, display_name: {display_name:?}, required: {required}, \
                 format: Format::{format:?}, secret: {secret} }}, "
            )?;
        }
        text.push_str("] },\n");
    }
    text.push_str("];\n");
    Ok(text)
}
