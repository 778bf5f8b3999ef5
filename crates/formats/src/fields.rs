//! Declares which members a reader takes from JSON objects. [`fields!`] makes a struct of the
//! members and the [`Cursor`] loop that finds them. Other members are skipped.

use std::ops::Range;

use epitome_json::{Cursor, MalformedJson};

/// The position of a value, if there is one.
pub type Found = Option<Range<usize>>;

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct List<T> {
    /// The position of the value; the value need not be an array.
    pub whole: Found,
    /// The elements; empty if the value is not an array.
    pub items: Vec<T>,
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List { whole: None, items: Vec::new() }
    }
}

impl<T> List<T> {
    /// The elements, if the value is an array.
    pub fn array_items(&self, line: &[u8]) -> Option<&[T]> {
        let is_array = self.whole.as_ref().is_some_and(|place| line[place.start] == b'[');
        is_array.then_some(&self.items)
    }

    /// Reads the next value and adds its elements to this list.
    pub fn read(
        &mut self,
        value: &mut Cursor<'_>,
        element: fn(&mut Cursor<'_>) -> Result<T, MalformedJson>,
    ) -> Result<(), MalformedJson> {
        let items = &mut self.items;
        self.whole = Some(value.array(|value| {
            items.push(element(value)?);
            Ok(())
        })?);
        Ok(())
    }
}

/// Declares structs with members of an object. A member has one or more keys, and a way to read its
/// value. If several of its keys occur, `texts`, `inside` and `list` collect the values of all; the
/// other ways read the last one.
///
/// | way | type | reads |
/// |---|---|---|
/// | `any` | [`Found`] | any value |
/// | `text` | [`Found`] | a string; nothing if it is another value |
/// | `truth` | `bool` | whether it is `true` |
/// | `number` | `Option<u64>` | an integer |
/// | `texts` | `Vec<Range<usize>>` | the strings in a list |
/// | `object<T>` | `Option<T>` | the members of an object |
/// | `value<T>` | `Option<T>` | the same; of a value that is no object, only the position |
/// | `inside<T>` | `T` | the same; if the key occurs again, its members are added |
/// | `list<T>` | [`List<T>`] | the elements of a list, each as with `value<T>` |
/// | `by<T>(f)` | `T` | what `f` returns |
///
/// Keys are compared as they are written: a key with escapes never matches.
///
/// After `else`, a declaration names a function that reads all other members, and the fields in
/// which the function keeps them. The field `whole` is the position of the object.
macro_rules! fields {
    ($(
        $(#[$note:meta])*
        pub struct $name:ident {
            $(
                $(#[$about:meta])*
                $field:ident: $($key:literal)|+ => $way:ident $(<$T:ty>)? $(($by:path))?,
            )*
        }
        $(else $rest:path { $($(#[$also:meta])* $extra:ident: $E:ty,)* })?
    )*) => {$(
        $(#[$note])*
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            /// The position of the object in the line.
            pub whole: std::ops::Range<usize>,
            $($(#[$about])* pub $field: $crate::fields::fields!(@type $way $($T)?),)*
            $($($(#[$also])* pub $extra: $E,)*)?
        }

        impl<'a> $crate::lines::ParseLine<'a> for $name {
            fn parse_line(line: &$crate::Line<'a>) -> Result<$name, epitome_json::MalformedJson> {
                $name::parse(line.bytes)
            }
        }

        #[allow(dead_code)]
        impl $name {
            /// Reads a record that is the whole text.
            pub fn parse(line: &[u8]) -> Result<$name, epitome_json::MalformedJson> {
                let mut cursor = epitome_json::Cursor::new(line);
                let fields = $name::read(&mut cursor)?;
                cursor.end()?;
                Ok(fields)
            }

            /// Reads the object at `place`.
            pub fn at(
                line: &[u8],
                place: &std::ops::Range<usize>,
            ) -> Result<$name, epitome_json::MalformedJson> {
                $name::read(&mut epitome_json::Cursor::at(line, place))
            }

            /// Reads the next value. If the value is not an object, only its position is set.
            pub fn read(
                value: &mut epitome_json::Cursor<'_>,
            ) -> Result<$name, epitome_json::MalformedJson> {
                let mut fields = $name::default();
                fields.add(value)?;
                Ok(fields)
            }

            /// Reads the next value, and adds its members to this struct.
            pub fn add(
                &mut self,
                value: &mut epitome_json::Cursor<'_>,
            ) -> Result<(), epitome_json::MalformedJson> {
                self.whole = value.object(|value, key| self.member(key, value))?;
                Ok(())
            }

            /// Reads the value of one member.
            pub fn member(
                &mut self,
                key: &[u8],
                value: &mut epitome_json::Cursor<'_>,
            ) -> Result<(), epitome_json::MalformedJson> {
                match key {
                    $($($key)|+ => $crate::fields::fields!(
                        @read self.$field, value, $way $(<$T>)? $(($by))?
                    ),)*
                    _ => $crate::fields::fields!(@else self, key, value $(, $rest)?),
                }
                Ok(())
            }
        }
    )*};
    (@type any) => { $crate::fields::Found };
    (@type text) => { $crate::fields::Found };
    (@type truth) => { bool };
    (@type number) => { Option<u64> };
    (@type texts) => { Vec<std::ops::Range<usize>> };
    (@type object $T:ty) => { Option<$T> };
    (@type value $T:ty) => { Option<$T> };
    (@type inside $T:ty) => { $T };
    (@type list $T:ty) => { $crate::fields::List<$T> };
    (@type by $T:ty) => { $T };
    (@read $field:expr, $value:ident, any) => { $field = Some($value.skip()?) };
    (@read $field:expr, $value:ident, text) => { $field = $value.string()? };
    (@read $field:expr, $value:ident, truth) => { $field = $value.truth()? };
    (@read $field:expr, $value:ident, number) => { $field = $value.integer()? };
    (@read $field:expr, $value:ident, texts) => {{
        $value.array(|element| {
            $field.extend(element.string()?);
            Ok(())
        })?;
    }};
    (@read $field:expr, $value:ident, object<$T:ty>) => {
        if $value.kind() == epitome_json::Kind::Object {
            $field = Some(<$T>::read($value)?);
        } else {
            $value.skip()?;
        }
    };
    (@read $field:expr, $value:ident, value<$T:ty>) => { $field = Some(<$T>::read($value)?) };
    (@read $field:expr, $value:ident, inside<$T:ty>) => { $field.add($value)? };
    (@read $field:expr, $value:ident, list<$T:ty>) => { $field.read($value, <$T>::read)? };
    (@read $field:expr, $value:ident, by<$T:ty>($by:path)) => { $field = $by($value)? };
    (@else $self:ident, $key:ident, $value:ident) => {{
        $value.skip()?;
    }};
    (@else $self:ident, $key:ident, $value:ident, $rest:path) => { $rest($self, $key, $value)? };
}

pub(crate) use fields;

#[cfg(test)]
mod tests {
    use super::*;

    fields! {
        /// An object with a member of each kind.
        pub struct Whole {
            any: b"any" => any,
            text: b"text" | b"words" => text,
            truth: b"truth" => truth,
            number: b"number" => number,
            texts: b"texts" => texts,
            object: b"object" => object<Part>,
            value: b"value" => value<Part>,
            inside: b"inside" => inside<Part>,
            list: b"list" => list<Part>,
            kind: b"kind" => by<Option<epitome_json::Kind>>(kind),
        }
        else other {
            /// The keys of the members that have no field.
            others: Vec<String>,
        }

        /// An object inside of a [`Whole`].
        pub struct Part {
            text: b"text" => text,
            id: b"id" => any,
        }
    }

    fn kind(value: &mut Cursor<'_>) -> Result<Option<epitome_json::Kind>, MalformedJson> {
        let kind = value.kind();
        value.skip()?;
        Ok(Some(kind))
    }

    fn other(whole: &mut Whole, key: &[u8], value: &mut Cursor<'_>) -> Result<(), MalformedJson> {
        value.skip()?;
        whole.others.push(String::from_utf8_lossy(key).into());
        Ok(())
    }

    fn check(text: &str, expect: &str) {
        let at = |place: &Range<usize>| text[place.clone()].to_owned();
        let found = |place: &Found| place.as_ref().map_or("-".to_owned(), at);
        let part =
            |part: &Part| format!("{}({} {})", at(&part.whole), found(&part.text), found(&part.id));
        let option = |it: &Option<Part>| it.as_ref().map_or("-".to_owned(), part);
        let list = |items: Vec<String>| format!("[{}]", items.join(","));
        let whole = Whole::parse(text.as_bytes()).expect("valid JSON");
        let shown = [
            at(&whole.whole),
            found(&whole.any),
            found(&whole.text),
            whole.truth.to_string(),
            format!("{:?}", whole.number),
            list(whole.texts.iter().map(at).collect()),
            option(&whole.object),
            option(&whole.value),
            part(&whole.inside),
            found(&whole.list.whole) + &list(whole.list.items.iter().map(part).collect()),
            format!("{:?}", whole.kind),
            list(whole.others),
        ];
        assert_eq!(shown[1..].join(" "), expect);
        assert_eq!(shown[0], text.trim());
    }

    #[test]
    fn each_way_reads_its_values_and_skips_others() {
        check("{}", "- - false None [] - - (- -) -[] None []");
        check(
            r#"{"any":[1],"words":"a","truth":true,"number":7,"texts":["b",1,"c"],"kind":[2]}"#,
            r#"[1] "a" true Some(7) ["b","c"] - - (- -) -[] Some(Array) []"#,
        );
        let part = r#"{"text":"t","id":3}"#;
        let read = format!(r#"{part}("t" 3)"#);
        check(
            &format!(r#"{{"object":{part},"value":{part},"inside":{part},"list":[{part},4]}}"#),
            &format!("- - false None [] {read} {read} {read} [{part},4][{read},4(- -)] None []"),
        );
        check(
            r#" {"any":null,"text":1,"truth":"true","number":"7","texts":1,"kind":6} "#,
            "null - false None [] - - (- -) -[] Some(Other) []",
        );
        check(
            r#"{"object":2,"value":3,"inside":4,"list":5}"#,
            "- - false None [] - 3(- -) 4(- -) 5[] None []",
        );
        check(r#"{"x":1,"y":{"text":"t"}}"#, "- - false None [] - - (- -) -[] None [x,y]");
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        check(
            r#"{"text":"a","words":"b","object":{"id":1},"object":{}}"#,
            r#"- "b" false None [] {}(- -) - (- -) -[] None []"#,
        );
        check(
            r#"{"text":"a","text":1,"inside":{"id":1},"inside":{}}"#,
            "- - false None [] - - {}(- 1) -[] None []",
        );
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        let error = |text: &str| Whole::parse(text.as_bytes()).err().map(|bad| bad.offset);
        assert_eq!(error(r#"{"any":1"#), Some(8));
        assert_eq!(error(r#"{"any":1} x"#), Some(10));
        assert_eq!(error("1"), None);
    }
}
