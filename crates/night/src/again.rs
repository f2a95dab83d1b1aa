//! Published nights that are made again from the inputs that their manifests name.

use nearprint_fault::Result;
use nearprint_storage::Storage;
use nearprint_store::is_about_content;

use super::inputs::known_files;
use super::lost_inputs::{LostInputs, Remedies};
use super::manifest::Manifest;
use super::published::{manifest_of, open_store, published};
use super::request::RunRequest;

/// The files that a message names.
pub(crate) const N_LISTED: usize = 5;

/// Returns the request to make a published night again, from what it was made from. `request` says all else.
///
/// # Errors
/// The store has no such night, or its manifest is damaged: nothing else says what it was made from.
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if inputs are gone, or else
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if some have changed.
pub async fn made_again(storage: &Storage, request: &RunRequest, dt: &str) -> Result<RunRequest> {
    let store = open_store(storage, &request.store).await?;
    let manifest = manifest_of(storage, &store, published(&store, dt)?).await;
    let manifest = manifest.map_err(|error| match is_about_content(&error) {
        true => error.remedy(format!("restore it{}", anew(dt))),
        false => error,
    })?;
    let mut again = RunRequest { dt: dt.to_owned(), replace: true, ..request.clone() };
    // One that the command line of the run had counts as part of what the night was made from.
    again.input.max_doc_bytes = manifest.max_doc_bytes.unwrap_or(again.input.max_doc_bytes);
    let references: Vec<String> = manifest.references.iter().map(|reference| reference.store.clone()).collect();
    if references != again.references {
        let were = if references.is_empty() {
            "without references".to_owned()
        } else {
            format!("with the references {}", references.join(", "))
        };
        tracing::warn!(
            dt,
            "it was made {were}, and keeps that; `nearprint run --config FILE --dt {dt} --replace` makes it with those that are given now"
        );
        again.references = references;
    }
    from_inputs_of(storage, &manifest, again, remedies(dt)).await
}

/// Returns the request to make a night from the inputs of a manifest, which have the ids that they had.
pub(crate) async fn from_inputs_of(
    storage: &Storage,
    manifest: &Manifest,
    mut request: RunRequest,
    remedies: Remedies,
) -> Result<RunRequest> {
    let (known, lost) = known_files(storage, manifest).await?;
    let mut all = LostInputs::default();
    all.add(&request.dt, lost, known.files.len());
    all.refuse(N_LISTED, remedies)?;
    request.inputs = Some(known);
    Ok(request)
}

fn remedies(dt: &str) -> Remedies {
    Remedies {
        gone: format!("the night was made from it: restore it{}", anew(dt)).into(),
        changed: format!("restore it{}", anew(dt)).into(),
        several: format!("restore them{}", anew(dt)).into(),
    }
}

fn anew(dt: &str) -> String {
    format!(
        ", or make the night from what is there now, with `nearprint run --config FILE --dt {dt} --replace`; it stays as it is \
         until then"
    )
}
