//! The numbers that a table gives its columns, in Parquet files.

use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_parquet::ParquetFile;
use parquet::schema::types::Type;

use super::batch::DocumentColumns;
use super::nested;

/// Refuses a file of a table that has a column under another name than the table, or another column under its name. Files
/// without numbers of columns have them by their names.
pub fn refuse_renamed(parquet: &ParquetFile, columns: &DocumentColumns) -> Result<()> {
    let Some(ids) = &parquet.file.column_ids else { return Ok(()) };
    let fields = parquet.footer().file_metadata().schema_descr().root_schema().get_fields();
    if !has_id(fields, &|_| true) {
        return Ok(());
    }
    // A column of the table has its number and its name; names that Parquet cannot have are written in another way, with the number.
    let is_renamed = |column: &str| match nested::way(fields, column) {
        Some(way) => {
            let mut names = Vec::with_capacity(way.len());
            way.into_iter().any(|part| {
                names.push(part.name().to_owned());
                let own = id_of(part);
                match ids.get(&names) {
                    Some(&id) => own != Some(id),
                    None => own.is_some_and(|own| ids.values().all(|&id| id != own)),
                }
            })
        }
        None => ids.iter().any(|(names, &id)| names.join(".") == column && has_id(fields, &|own| own == id)),
    };
    match [&columns.id, &columns.text].into_iter().chain(columns.kept()).find(|column| is_renamed(column)) {
        None => Ok(()),
        Some(column) => {
            let reason = format!(
                "the Iceberg table has dropped or renamed the column '{column}' since, given its name to another one, or has it under \
                 another name in this file"
            );
            let remedy = "name the column as the files have it, let the table's engine write them anew (rewrite_data_files), or write the \
                          rows that count to a new table or to Parquet files, and name these";
            Err(Fault::bad_data(&parquet.file.url, reason).column(column).remedy(remedy))
        }
    }
}

/// Returns whether a column, or one within another, has a number that `fits`.
fn has_id(fields: &[Arc<Type>], fits: &dyn Fn(i32) -> bool) -> bool {
    let is_within = |field: &Type| field.is_group() && has_id(field.get_fields(), fits);
    fields.iter().any(|field| id_of(field).is_some_and(fits) || is_within(field))
}

/// Returns the number that a table has given a column.
fn id_of(column: &Type) -> Option<i32> {
    let info = column.get_basic_info();
    info.has_id().then(|| info.id())
}
