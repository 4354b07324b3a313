//! `cloakroom formulas`: the catalog of connection formulas, for people and programs.

use std::io::IsTerminal as _;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use cloakroom_formulas::{Country, Currency, FORMULAS, Feature, Filter, Formula, Method, find};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

/// How wide lists of codes are, so that they read well wherever they are pasted.
const WIDTH: u16 = 100;
/// How alike two ids are when one may be meant by the other, from 0 to 1.
const LIKENESS_MIN: f64 = 0.75;
const SUGGESTIONS_MAX: usize = 3;

#[derive(Subcommand)]
pub(crate) enum FormulasCommand {
    /// List the formulas that fit
    List(ListArguments),
    /// Show everything about one formula
    Show {
        /// The formula's id, such as stripe-card
        id: String,
        /// Print it as JSON, as the API does
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct ListArguments {
    /// With this id; more than once: with one of them
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// With this method; more than once: with one of them
    #[arg(long, value_name = "METHOD")]
    method: Vec<Method>,
    /// That supports this currency (ISO 4217); more than once: all of them
    #[arg(long, value_name = "CODE")]
    currency: Vec<Currency>,
    /// That supports this country (ISO 3166-1 alpha-2); more than once: all of them
    #[arg(long, value_name = "CODE")]
    country: Vec<Country>,
    /// That supports this feature; more than once: all of them
    #[arg(long, value_name = "FEATURE")]
    feature: Vec<Feature>,
    /// Print an array of formulas as JSON, each as the API shows it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: FormulasCommand) -> anyhow::Result<()> {
    match command {
        FormulasCommand::List(arguments) => list(arguments),
        FormulasCommand::Show { id, json } => show(&id, json),
    }
}

fn list(arguments: ListArguments) -> anyhow::Result<()> {
    let filter = Filter {
        ids: arguments.id,
        methods: arguments.method,
        currencies: arguments.currency,
        countries: arguments.country,
        features: arguments.feature,
    };
    let formulas: Vec<&Formula> = filter.formulas().collect();
    if arguments.json {
        return print_json(&formulas);
    }
    if formulas.is_empty() {
        say!("no formula fits");
        return Ok(());
    }
    say!("{}", listed(&formulas));
    Ok(())
}

fn listed(formulas: &[&Formula]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "id",
        "name",
        "currencies",
        "countries",
        "does not support",
    ]);
    // A line stays a line where programs read it.
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for formula in formulas {
        table.add_row([
            formula.id,
            formula.display_name,
            &formula.supported_currencies.len().to_string(),
            &formula.supported_countries.len().to_string(),
            &features(formula, false),
        ]);
    }
    for counted in [2, 3] {
        if let Some(column) = table.column_mut(counted) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The names of the features that a formula has, or has not.
fn features(formula: &Formula, has: bool) -> String {
    let all = Feature::ALL.iter().copied();
    let meant = all.filter(|feature| formula.supported_features.has(*feature) == has);
    let names: Vec<&str> = meant.map(Feature::name).collect();
    names.join(" ")
}

fn show(id: &str, json: bool) -> anyhow::Result<()> {
    let formula = find(id).ok_or_else(|| unknown(id))?;
    if json {
        return print_json(formula);
    }
    say!("{}", described(formula));
    say!("\n{}", fields(formula));
    Ok(())
}

fn described(formula: &Formula) -> Table {
    let (currencies, countries) = (formula.supported_currencies, formula.supported_countries);
    let count = |what: &str, codes: &[&str]| format!("{} {what}", codes.len());
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .add_row(["id", formula.id])
        .add_row(["name", formula.display_name])
        .add_row(["method", formula.method.name()])
        .add_row([&count("currencies", currencies), &currencies.join(" ")])
        .add_row([&count("countries", countries), &countries.join(" ")])
        .add_row(["supports", &features(formula, true)]);
    let missing = features(formula, false);
    if !missing.is_empty() {
        table.add_row(["does not support", &missing]);
    }
    table
}

fn fields(formula: &Formula) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(["field", "name", "", "", "format"]);
    for field in formula.fields {
        table.add_row([
            field.key,
            field.display_name,
            if field.required {
                "required"
            } else {
                "optional"
            },
            if field.secret { "secret" } else { "" },
            field.format.name(),
        ]);
    }
    table
}

/// Names what may have been meant, the likeliest first.
fn unknown(id: &str) -> anyhow::Error {
    let lower = id.to_lowercase();
    let likeness = |formula: &Formula| {
        let processor = formula.id.trim_end_matches("-card");
        let alike = |known: &str| strsim::jaro_winkler(&lower, known);
        alike(formula.id).max(alike(processor))
    };
    let all = FORMULAS
        .iter()
        .map(|formula| (likeness(formula), formula.id));
    let mut alike: Vec<(f64, &str)> = all.filter(|it| it.0 >= LIKENESS_MIN).collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0));
    let meant: Vec<&str> = alike.iter().map(|it| it.1).take(SUGGESTIONS_MAX).collect();
    match meant.is_empty() {
        true => anyhow!("there is no formula {id}; `cloakroom formulas list` shows all"),
        false => anyhow!(
            "there is no formula {id}; did you mean {}?",
            meant.join(" or ")
        ),
    }
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).context("formulas")?;
    say!("{text}");
    Ok(())
}
