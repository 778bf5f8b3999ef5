//! `epitome proxy --stats`: what was sent through the proxy, in tables.

use epitome::wire::comparison::Comparison;
use epitome::wire::stats::{CutSum, ProxyReport, RequestSum};
use epitome_model::MicroDollars;

use crate::table::{Side, Table};
use crate::text::{BOLD, DIM, PLAIN, change, count, one_line};

/// The maximum number of cuts that are listed. From a cut on, the proxy sends the old messages of a
/// conversation in fewer tokens.
const CUTS: usize = 10;
/// The maximum number of characters of a name: of a row, or of the model of a cut.
const NAME: usize = 40;

/// The report as tables, with `prices_of` as the date of the list prices.
pub fn render(report: &ProxyReport, prices_of: &str) -> String {
    let mut text = requests(report);
    text.push_str(&notes(&report.total, report.skipped, prices_of));
    if !report.cuts.is_empty() {
        text.push_str(&format!("\n{BOLD}cuts{BOLD:#}\n{}", cuts(&report.cuts)));
    }
    if let Some(comparison) = &report.comparison {
        let groups = groups(comparison);
        text.push_str(&format!("\n{BOLD}conversations held out{BOLD:#}\n{groups}"));
    }
    text
}

fn requests(report: &ProxyReport) -> String {
    use Side::{Left, Right};
    let sides = [Left, Right, Right, Right, Right, Right, Right, Right, Right];
    let by = report.by.name();
    let heads =
        [by, "requests", "input", "cached", "written", "output", "cost", "unchanged", "change"];
    let table = Table::new(&sides, &heads).shrinks(0, 12);
    let mut table = table.leaves_out(&[4, 3, 5]);
    for row in &report.rows {
        let name = row.name.as_deref().map_or("-".to_owned(), |name| one_line(name, NAME));
        let style = if row.name.is_some() { PLAIN } else { DIM };
        table.styled(style, cells(name, &row.sum));
    }
    table.styled(BOLD, cells("total".to_owned(), &report.total));
    table.render()
}

fn cells(name: String, sum: &RequestSum) -> Vec<String> {
    let price = |amount: String| if sum.has_price() { amount } else { "-".to_owned() };
    vec![
        name,
        sum.requests.to_string(),
        sum.input_tokens.to_string(),
        sum.cached_tokens.to_string(),
        sum.cache_written_tokens.to_string(),
        sum.output_tokens.to_string(),
        price(sum.cost.to_string()),
        price(sum.unchanged_cost.to_string()),
        price(change(sum.unchanged_cost.0, sum.cost.0)),
    ]
}

/// Notes on what the numbers of the table mean, and on requests that they do not contain.
fn notes(total: &RequestSum, skipped: u64, prices_of: &str) -> String {
    let mut notes = vec![format!(
        "tokens: what the services counted, and about {} less than unchanged; cost: list prices \
         of {prices_of}; unchanged: estimated, the prices of the cache included",
        total.saved_tokens
    )];
    let RequestSum { passed, known, shortened, cut, .. } = total;
    notes.push(format!(
        "{} in {}: {passed} sent as they came, {known} as decided before, {shortened} with new \
         results shortened, {cut} with a cut",
        count(total.requests, "request"),
        count(total.conversations, "conversation"),
    ));
    for (requests, what) in total.shortfalls() {
        notes.push(format!("{} {what}", count(requests, "request")));
    }
    if total.recalled > 0 {
        notes.push(format!("models asked {} back", count(total.recalled, "removed text")));
    }
    if skipped > 0 {
        notes.push(format!("{} of the ledger cannot be read", count(skipped, "line")));
    }
    notes.iter().map(|note| format!("{DIM}{note}{DIM:#}\n")).collect()
}

fn cuts(cuts: &[CutSum]) -> String {
    use Side::{Left, Right};
    let sides = [Left, Left, Right, Right, Right, Right, Right, Right];
    let heads =
        ["made", "model", "rewritten", "price", "requests", "not sent", "saved", "gain so far"];
    let table = Table::new(&sides, &heads).shrinks(1, 8);
    let mut table = table.leaves_out(&[2, 5]);
    for cut in cuts.iter().take(CUTS) {
        let money =
            |amount: Option<MicroDollars>| amount.map_or("-".into(), |amount| amount.to_string());
        let gain = cut.saved.zip(cut.price).map_or("-".to_owned(), |(saved, price)| {
            match saved >= price {
                true => (saved - price).to_string(),
                false => format!("-{}", price - saved),
            }
        });
        table.row(vec![
            cut.time.strftime("%Y-%m-%d %H:%M").to_string(),
            one_line(cut.model.as_deref().unwrap_or("-"), NAME),
            cut.rewritten_tokens.to_string(),
            money(cut.price),
            cut.requests.to_string(),
            cut.saved_tokens.to_string(),
            money(cut.saved),
            gain,
        ]);
    }
    let mut text = table.render();
    if cuts.len() > CUTS {
        let older = count((cuts.len() - CUTS) as u64, "older cut");
        text.push_str(&format!("{DIM}and {older}, with --json{DIM:#}\n"));
    }
    text
}

fn groups(comparison: &Comparison) -> String {
    use Side::{Left, Right};
    let heads = ["", "treated", "held out", "difference (95%)"];
    let mut table = Table::new(&[Left, Right, Right, Right], &heads);
    for row in comparison.rows() {
        table.row(vec![row.title.to_owned(), row.treated, row.holdout, row.difference]);
    }
    let mut text = table.render();
    for note in comparison.notes() {
        text.push_str(&format!("{DIM}{note}{DIM:#}\n"));
    }
    text
}
