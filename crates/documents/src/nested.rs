//! Columns within columns of Parquet files: `doc.text` is the value `text` within the column `doc`, unless there is a column of
//! this whole name.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Fields};
use arrow::error::ArrowError;
use parquet::schema::types::{SchemaDescriptor, Type};

/// Returns the type of a column.
pub fn data_type<'a>(fields: &'a Fields, name: &str) -> Option<&'a DataType> {
    let own = fields.find(name).map(|(_, field)| field.data_type());
    own.or_else(|| {
        splits(name).find_map(|(outer, inner)| match fields.find(outer)?.1.data_type() {
            DataType::Struct(fields) => data_type(fields, inner),
            _ => None,
        })
    })
}

/// Returns whether several columns have the name, or one on the way to a column within others.
pub fn is_ambiguous(fields: &Fields, name: &str) -> bool {
    let n_named = |name: &str| fields.iter().filter(|field| field.name() == name).count();
    let is_ambiguous_within =
        |(outer, inner): (&str, &str)| match fields.find(outer).map(|(_, field)| field.data_type()) {
            Some(DataType::Struct(within)) if data_type(within, inner).is_some() => {
                n_named(outer) > 1 || is_ambiguous(within, inner)
            }
            _ => false,
        };
    match n_named(name) {
        0 => splits(name).any(is_ambiguous_within),
        n => n > 1,
    }
}

/// Returns the values of a column. Values within a NULL are NULL.
///
/// # Errors
/// The batch is damaged.
pub fn column(batch: &RecordBatch, name: &str) -> Result<Option<ArrayRef>, ArrowError> {
    match batch.column_by_name(name) {
        Some(column) => Ok(Some(ArrayRef::clone(column))),
        None => within(&StructArray::from(batch.clone()), name),
    }
}

fn within(values: &StructArray, name: &str) -> Result<Option<ArrayRef>, ArrowError> {
    if let Some(column) = values.column_by_name(name) {
        let Some(nulls) = values.nulls() else { return Ok(Some(ArrayRef::clone(column))) };
        return nullif(column, &BooleanArray::new(!nulls.inner(), None)).map(Some);
    }
    for (outer, inner) in splits(name) {
        if let Some(outer) = values.column_by_name(outer).and_then(|column| column.as_struct_opt())
            && let Some(column) = within(outer, inner)?
        {
            return Ok(Some(column));
        }
    }
    Ok(None)
}

/// Returns the number of the leaf of a Parquet schema that a column is. Values of lists are no columns.
pub fn leaf(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    let leaves = || 0..schema.num_columns();
    let own = leaves().find(|&leaf| schema.column(leaf).path().parts() == [name.to_owned()]);
    own.or_else(|| {
        leaves().find(|&leaf| schema.column(leaf).path().string() == name && schema.column(leaf).max_rep_level() == 0)
    })
}

/// Returns the columns of a Parquet schema that lead to a column, itself the last.
pub fn way<'a>(fields: &'a [Arc<Type>], name: &str) -> Option<Vec<&'a Type>> {
    if let Some(own) = fields.iter().find(|field| field.name() == name) {
        return Some(vec![own.as_ref()]);
    }
    splits(name).find_map(|(outer, inner)| {
        let outer = fields.iter().find(|field| field.name() == outer && field.is_group())?;
        let mut found = way(outer.get_fields(), inner)?;
        found.insert(0, outer.as_ref());
        Some(found)
    })
}

/// Returns the ways to take the beginning of a name as that of an outer column.
fn splits(name: &str) -> impl Iterator<Item = (&str, &str)> {
    name.match_indices('.').map(|(at, _)| (&name[..at], &name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, StructArray};
    use arrow::datatypes::{DataType, Field, Fields};

    use super::{column, data_type, is_ambiguous};

    #[test]
    fn a_value_within_a_null_is_null_and_a_column_of_the_whole_name_comes_first() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let inner = Fields::from(vec![Field::new("text", DataType::Utf8, false)]);
        let doc = StructArray::new(inner.clone(), vec![Arc::clone(&text)], Some(vec![true, false, true].into()));
        let doc: ArrayRef = Arc::new(doc);
        let batch = RecordBatch::try_from_iter([("doc", Arc::clone(&doc))]).unwrap();
        let found = column(&batch, "doc.text").unwrap().unwrap();
        let found: Vec<_> = found.as_string::<i32>().iter().collect();
        assert_eq!(found, [Some("a"), None, Some("c")]);
        assert_eq!(data_type(batch.schema().fields(), "doc.text"), Some(&DataType::Utf8));
        assert!(column(&batch, "doc.id").unwrap().is_none());
        let whole: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
        let batch = RecordBatch::try_from_iter([("doc", doc), ("doc.text", whole)]).unwrap();
        assert_eq!(column(&batch, "doc.text").unwrap().unwrap().as_string::<i32>().value(1), "y");
        assert_eq!(batch.num_columns(), 2);
    }

    #[test]
    fn a_name_is_ambiguous_if_several_columns_have_it_or_one_that_leads_to_it() {
        let text = || Field::new("text", DataType::Utf8, false);
        let doc = |fields: Vec<Field>| Field::new("doc", DataType::Struct(Fields::from(fields)), false);
        for (fields, name, expected) in [
            (vec![text(), text()], "text", true),
            (vec![text(), doc(vec![text()])], "text", false),
            (vec![text(), text(), doc(vec![text()])], "doc.text", false),
            (vec![doc(vec![text(), text()])], "doc.text", true),
            (vec![doc(vec![text()]), doc(vec![text()])], "doc.text", true),
            (vec![text(), text()], "id", false),
        ] {
            let fields = Fields::from(fields);
            assert_eq!(is_ambiguous(&fields, name), expected, "{name} in {fields:?}");
        }
    }
}
