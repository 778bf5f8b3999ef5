//! Batches of sessions, as columns.

use epitome_bindings::{
    CompactedRow, FleetPack, FleetSession, InspectedRow, RedactedRow, RestoredRow, Row, RowError,
};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict};

/// A column of texts; a row without a text has `None`.
type Texts = Vec<Option<PyBackedStr>>;
/// A column of bytes, which are not copied; a row without bytes has `None`.
type Blobs = Vec<Option<PyBackedBytes>>;

/// Compacts, restores, inspects and redacts batches of sessions.
#[pyclass(frozen, module = "epitome._native")]
pub struct Fleet {
    fleet: epitome_bindings::Fleet,
}

#[pymethods]
impl Fleet {
    /// A fleet with options as JSON. An error is raised as a `ValueError` with JSON.
    #[new]
    fn new(py: Python<'_>, options: &[u8]) -> PyResult<Fleet> {
        let fleet = py.detach(|| epitome_bindings::Fleet::new(options));
        let raised = |err| pyo3::exceptions::PyValueError::new_err(epitome_bindings::error(&err));
        Ok(Fleet { fleet: fleet.map_err(raised)? })
    }

    /// Compacts sessions. Returns the columns of the result, by their names.
    fn compact<'py>(
        &self,
        py: Python<'py>,
        ids: Texts,
        sessions: Blobs,
        agents: Option<Texts>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rows = fleet_sessions(&ids, &sessions, agents.as_ref());
        let rows = py.detach(|| self.fleet.compact(&rows));
        compacted_columns(py, &rows)
    }

    /// Inspects sessions. Returns the columns of the result, by their names.
    fn inspect<'py>(
        &self,
        py: Python<'py>,
        ids: Texts,
        sessions: Blobs,
        agents: Option<Texts>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rows = fleet_sessions(&ids, &sessions, agents.as_ref());
        let rows = py.detach(|| self.fleet.inspect(&rows));
        inspected_columns(py, &rows)
    }

    /// Redacts sessions. Returns the columns of the result, by their names.
    fn redact<'py>(
        &self,
        py: Python<'py>,
        ids: Texts,
        sessions: Blobs,
        agents: Option<Texts>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rows = fleet_sessions(&ids, &sessions, agents.as_ref());
        let rows = py.detach(|| self.fleet.redact(&rows));
        redacted_columns(py, &rows)
    }

    /// Restores sessions. Returns the columns of the result, by their names.
    fn restore<'py>(
        &self,
        py: Python<'py>,
        sessions: Blobs,
        packs: Blobs,
        hashes: Option<Texts>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rows: Vec<FleetPack<'_>> = sessions
            .iter()
            .zip(&packs)
            .enumerate()
            .map(|(n, (bytes, pack))| FleetPack {
                bytes: bytes.as_deref(),
                pack: pack.as_deref(),
                blake3: hashes.as_ref().and_then(|hashes| hashes.get(n)?.as_deref()),
            })
            .collect();
        let rows = py.detach(|| self.fleet.restore(&rows));
        restored_columns(py, &rows)
    }
}

fn fleet_sessions<'a>(
    ids: &'a Texts,
    sessions: &'a Blobs,
    agents: Option<&'a Texts>,
) -> Vec<FleetSession<'a>> {
    let rows = sessions.iter().enumerate().map(|(n, bytes)| FleetSession {
        id: ids.get(n).and_then(Option::as_deref).unwrap_or_default(),
        bytes: bytes.as_deref(),
        agent: agents.and_then(|agents| agents.get(n)?.as_deref()),
    });
    rows.collect()
}

fn compacted_columns<'py>(
    py: Python<'py>,
    rows: &[Row<CompactedRow>],
) -> PyResult<Bound<'py, PyDict>> {
    let done: Vec<Option<&CompactedRow>> = rows.iter().map(|row| row.done.as_ref().ok()).collect();
    let columns = PyDict::new(py);
    let outcome = rows.iter().map(|row| match &row.done {
        Ok(row) if row.compacted.bytes.is_some() => "compacted",
        Ok(_) => "nothing",
        Err(_) => "error",
    });
    columns.set_item("outcome", outcome.collect::<Vec<_>>())?;
    columns.set_item("agent", each(&done, |row| Some(row.agent)))?;
    columns.set_item("compacted", blobs(py, &done, |row| row.compacted.bytes.as_deref()))?;
    columns.set_item("pack", blobs(py, &done, |row| row.compacted.pack.as_deref()))?;
    let number = |name: &str, of: &dyn Fn(&CompactedRow) -> Option<i64>| {
        columns.set_item(name, each(&done, of))
    };
    number("tokens_before", &|row| signed(row.compacted.context_tokens.before.0))?;
    number("tokens_after", &|row| signed(row.compacted.context_tokens.after.0))?;
    number("bytes_before", &|row| signed(row.compacted.disk_bytes.before.0))?;
    number("bytes_after", &|row| signed(row.compacted.disk_bytes.after.0))?;
    number("edits", &|row| signed(row.compacted.edits.values().sum()))?;
    let facts = |row: &CompactedRow| row.compacted.facts;
    number("facts_before", &|row| signed(facts(row)?.before))?;
    number("facts_gone", &|row| signed(facts(row)?.gone))?;
    let quote = |row: &CompactedRow| row.compacted.quote.clone();
    columns.set_item("price_model", each(&done, |row| quote(row).map(|it| it.model)))?;
    number("price_next_before", &|row| signed(quote(row)?.next_cost.before.0))?;
    number("price_next_after", &|row| signed(quote(row)?.next_cost.after.0))?;
    number("price_later_before", &|row| signed(quote(row)?.later_cost.before.0))?;
    number("price_later_after", &|row| signed(quote(row)?.later_cost.after.0))?;
    let hash = |row: &CompactedRow| row.compacted.digest.before.blake3.to_string();
    columns.set_item("blake3_before", each(&done, |row| Some(hash(row))))?;
    let hash = |row: &CompactedRow| row.compacted.digest.after.blake3.to_string();
    columns.set_item("blake3_after", each(&done, |row| Some(hash(row))))?;
    let redacted = |row: &CompactedRow| Some(row.redacted.as_ref()?.found.clone());
    columns.set_item("redactions", each(&done, redacted))?;
    let redacted = blobs(py, &done, |row| Some(row.redacted.as_ref()?.bytes.as_slice()));
    columns.set_item("redacted", redacted)?;
    set_errors(&columns, rows)?;
    Ok(columns)
}

fn inspected_columns<'py>(
    py: Python<'py>,
    rows: &[Row<InspectedRow>],
) -> PyResult<Bound<'py, PyDict>> {
    let done: Vec<Option<&InspectedRow>> = rows.iter().map(|row| row.done.as_ref().ok()).collect();
    let columns = PyDict::new(py);
    columns.set_item("agent", each(&done, |row| Some(row.agent)))?;
    columns.set_item("session_id", each(&done, |row| row.id.as_deref()))?;
    columns.set_item("model", each(&done, |row| row.model.as_deref()))?;
    columns.set_item("cwd", each(&done, |row| row.cwd.as_deref()))?;
    columns.set_item("tokens", each(&done, |row| signed(row.context_tokens.0)))?;
    columns.set_item("messages", each(&done, |row| signed(row.entries)))?;
    columns.set_item("messages_sent", each(&done, |row| signed(row.sent_entries)))?;
    columns.set_item("turns", each(&done, |row| signed(row.turns)))?;
    columns.set_item("calls", each(&done, |row| signed(row.calls)))?;
    columns.set_item("faults", each(&done, |row| signed(row.faults)))?;
    columns.set_item("violations", each(&done, |row| Some(row.violations.clone())))?;
    set_errors(&columns, rows)?;
    Ok(columns)
}

fn redacted_columns<'py>(
    py: Python<'py>,
    rows: &[Row<RedactedRow>],
) -> PyResult<Bound<'py, PyDict>> {
    let done: Vec<Option<&RedactedRow>> = rows.iter().map(|row| row.done.as_ref().ok()).collect();
    let columns = PyDict::new(py);
    columns.set_item("redacted", blobs(py, &done, |row| Some(&row.bytes)))?;
    columns.set_item("redactions", each(&done, |row| Some(row.found.as_str())))?;
    set_errors(&columns, rows)?;
    Ok(columns)
}

fn restored_columns<'py>(
    py: Python<'py>,
    rows: &[Row<RestoredRow>],
) -> PyResult<Bound<'py, PyDict>> {
    let done: Vec<Option<&RestoredRow>> = rows.iter().map(|row| row.done.as_ref().ok()).collect();
    let columns = PyDict::new(py);
    columns.set_item("restored", blobs(py, &done, |row| row.bytes.as_deref()))?;
    columns.set_item("blake3", each(&done, |row| Some(row.blake3.clone())))?;
    let proved = done.iter().map(|row| row.is_some_and(|row| row.is_proved));
    columns.set_item("proved", proved.collect::<Vec<bool>>())?;
    set_errors(&columns, rows)?;
    Ok(columns)
}

fn set_errors<T>(columns: &Bound<'_, PyDict>, rows: &[Row<T>]) -> PyResult<()> {
    let errors: Vec<Option<&RowError>> = rows.iter().map(|row| row.done.as_ref().err()).collect();
    columns.set_item("error", each(&errors, |err| Some(err.kind)))?;
    columns.set_item("error_message", each(&errors, |err| Some(err.message.as_str())))?;
    columns.set_item("error_hint", each(&errors, |err| err.hint.clone()))
}

fn each<'r, R, T>(rows: &[Option<&'r R>], of: impl Fn(&'r R) -> Option<T>) -> Vec<Option<T>> {
    rows.iter().map(|row| row.and_then(&of)).collect()
}

fn blobs<'py, 'r, R>(
    py: Python<'py>,
    rows: &[Option<&'r R>],
    of: impl Fn(&'r R) -> Option<&'r [u8]>,
) -> Vec<Option<Bound<'py, PyBytes>>> {
    each(rows, |row| Some(PyBytes::new(py, of(row)?)))
}

/// A count as a signed number of 64 bits, which every table engine has; `None` if it is too large.
fn signed(count: u64) -> Option<i64> {
    i64::try_from(count).ok()
}
