//! The baseline of times: for each build profile and command, the ratio to the time of parsing the
//! same bytes.

use std::fs;

use anyhow::Context;

use xtask::cargo;

/// The path of the baseline's file in the repository.
pub(super) const PATH: &str = "testing/lab/bench-baseline.tsv";

/// The result of one command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    what: String,
    /// The command's time, divided by the time in which one core parses the same bytes. In a row
    /// with a limit: divided by the command's time with the original session.
    ratio: f64,
    /// If set, the limit of the ratio, in place of the baseline.
    limit: Option<f64>,
}

impl Row {
    pub(super) fn new(what: &str, ratio: f64) -> Row {
        Row { what: what.to_owned(), ratio, limit: None }
    }

    /// The row for a command that reads a compacted session: its ratio is to the time of reading
    /// the original.
    pub(super) fn of_limit(what: &str, ratio: f64, limit: f64) -> Row {
        let what = format!("{what} of a compacted session, of the time before");
        Row { what, ratio, limit: Some(limit) }
    }
}

/// The rows of the file: profile, command, ratio.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Baseline(Vec<(String, String, f64)>);

impl Baseline {
    pub(super) fn read() -> anyhow::Result<Baseline> {
        let text = fs::read_to_string(cargo::root().join(PATH)).unwrap_or_default();
        Baseline::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Baseline> {
        let row = |line: &str| {
            let mut cells = line.split('\t');
            let cells = (cells.next(), cells.next(), cells.next());
            let (Some(profile), Some(what), Some(ratio)) = cells else {
                anyhow::bail!("{PATH}: {line:?} is no row");
            };
            let ratio = ratio.parse().with_context(|| format!("{PATH}: {ratio:?}"))?;
            Ok((profile.to_owned(), what.to_owned(), ratio))
        };
        text.lines()
            .filter(|it| !it.starts_with('#'))
            .map(row)
            .collect::<Result<_, _>>()
            .map(Baseline)
    }

    /// The rows that exceed their limit or `times` their baseline, and the rows that have neither,
    /// as sentences.
    pub(super) fn slower(&self, profile: &str, rows: &[Row], times: f64) -> Vec<String> {
        let of = |row: &Row| {
            let Row { what, ratio, limit } = row;
            if let Some(limit) = limit {
                return (ratio > limit).then(|| format!("{what}: {ratio:.2}, limit {limit}"));
            }
            let known = |(of, name, _): &&(String, String, f64)| of == profile && name == what;
            match self.0.iter().find(known) {
                Some((_, _, baseline)) if *ratio <= baseline * times => None,
                Some((_, _, baseline)) => Some(format!(
                    "{what}: {ratio:.2}, baseline {baseline:.2}, {times} times allowed"
                )),
                None => Some(format!("{what}: no baseline for the profile {profile}")),
            }
        };
        rows.iter().filter_map(of).collect()
    }

    /// Replaces the rows of a profile and writes the file. Rows with a limit are left out.
    pub(super) fn write(&mut self, profile: &str, rows: Vec<Row>) -> anyhow::Result<()> {
        self.0.retain(|(of, _, _)| of != profile);
        let rows = rows.into_iter().filter(|row| row.limit.is_none());
        self.0.extend(rows.map(|row| (profile.to_owned(), row.what, row.ratio)));
        fs::write(cargo::root().join(PATH), self.text())?;
        Ok(())
    }

    fn text(&self) -> String {
        let mut text =
            "# Made by `cargo lab bench --write [PROFILE]`: profile, command, time as a \
                        multiple of one core parsing the same bytes.\n"
                .to_owned();
        for (profile, what, ratio) in &self.0 {
            text.push_str(&format!("{profile}\t{what}\t{ratio:.2}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_held_against_its_baseline_or_its_limit() {
        let baseline = Baseline::parse("# head\ndev\ta\t2.00\ndist\ta\t1.00\n").expect("rows");
        assert_eq!(Baseline::parse(&baseline.text()).expect("rows"), baseline);
        let slower = |rows: &[Row]| baseline.slower("dev", rows, 1.5);
        assert_eq!(slower(&[Row::new("a", 3.0), Row::of_limit("html", 1.3, 1.3)]), [""; 0]);
        let rows = [Row::new("a", 3.1), Row::new("b", 0.1), Row::of_limit("html", 1.4, 1.3)];
        let expect = [
            "a: 3.10, baseline 2.00, 1.5 times allowed",
            "b: no baseline for the profile dev",
            "html of a compacted session, of the time before: 1.40, limit 1.3",
        ];
        assert_eq!(slower(&rows), expect);
        assert!(Baseline::parse("dev\ta").is_err() && Baseline::parse("dev\ta\tb").is_err());
    }
}
