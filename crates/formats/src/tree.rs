//! The tree of records that name their parents.

use std::collections::HashMap;

/// A record that has an id, and the record that it continues.
#[derive(Clone, Debug)]
pub struct Node {
    /// The index of the record among the items of the transcript.
    pub item: usize,
    /// The id of the record.
    pub id: Box<str>,
    /// The id of the record that this record continues; `None` for a root.
    pub parent: Option<Box<str>>,
}

/// What [`path`] does if a parent is not in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// The path begins at the record whose parent is missing.
    Ends,
    /// The path continues with the node before it in the file.
    ContinuesAbove,
}

/// The nodes from a root to the node `leaf`, both included, as indices into `nodes`.
///
/// If several nodes have the same id, the last one is used. A cycle ends the path.
pub fn path(nodes: &[Node], leaf: usize, orphan: Orphan) -> Vec<usize> {
    let by_id: HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(idx, node)| (&*node.id, idx)).collect();
    let mut seen = vec![false; nodes.len()];
    let mut path = Vec::new();
    let mut next = Some(leaf);
    while let Some(idx) = next {
        if std::mem::replace(&mut seen[idx], true) {
            break;
        }
        path.push(idx);
        next = nodes[idx].parent.as_deref().and_then(|parent| {
            by_id.get(parent).copied().or_else(|| match orphan {
                Orphan::Ends => None,
                Orphan::ContinuesAbove => idx.checked_sub(1),
            })
        });
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(nodes: &[(&str, Option<&str>)], orphan: Orphan, expect: &[usize]) {
        let nodes: Vec<Node> = nodes
            .iter()
            .enumerate()
            .map(|(item, (id, parent))| Node {
                item,
                id: (*id).into(),
                parent: parent.map(Into::into),
            })
            .collect();
        assert_eq!(path(&nodes, nodes.len() - 1, orphan), expect, "{nodes:?}");
    }

    #[test]
    fn a_walk_goes_from_the_leaf_to_the_root() {
        check(
            &[("a", None), ("b", Some("a")), ("x", Some("a")), ("c", Some("b"))],
            Orphan::Ends,
            &[0, 1, 3],
        );
    }

    #[test]
    fn a_missing_parent_ends_the_walk_or_not() {
        let nodes = [("a", None), ("b", Some("a")), ("c", Some("gone"))];
        check(&nodes, Orphan::Ends, &[2]);
        check(&nodes, Orphan::ContinuesAbove, &[0, 1, 2]);
    }

    #[test]
    fn a_loop_ends_the_walk() {
        check(&[("a", Some("b")), ("b", Some("a"))], Orphan::Ends, &[0, 1]);
        check(&[("a", Some("a"))], Orphan::ContinuesAbove, &[0]);
    }

    #[test]
    fn the_last_of_equal_ids_counts() {
        check(&[("a", None), ("a", None), ("b", Some("a"))], Orphan::Ends, &[1, 2]);
    }
}
