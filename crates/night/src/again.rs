//! Published nights that are made again from the inputs that their manifests name.

use nearprint_fault::{Result, key, words};
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
/// A night whose manifest is lost is made from what is at the place of the documents now, since nothing says what it was made
/// from.
///
/// # Errors
/// The store has no such night. [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if inputs are gone, or
/// else [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if some have changed.
pub async fn made_again(storage: &Storage, request: &RunRequest, dt: &str) -> Result<RunRequest> {
    let store = open_store(storage, &request.store).await?;
    let again = RunRequest { dt: dt.to_owned(), replace: true, ..request.clone() };
    let manifest = match manifest_of(storage, &store, published(&store, dt)?).await {
        Ok(manifest) => manifest,
        Err(error) if is_about_content(&error) => {
            tracing::warn!(dt, "{error}: the night is made from the documents that are there now");
            return Ok(again);
        }
        Err(error) => return Err(error),
    };
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
    request.columns.web.root.clone_from(&manifest.html_root);
    Ok(request)
}

fn remedies(dt: &str) -> Remedies {
    let anew = || {
        words![
            format!(", or publish {dt} from what is there now with `nearprint run --dt {dt}` and "),
            key("replace"),
            "; the night stays as it is"
        ]
    };
    Remedies {
        gone: words!["the night was made from it: restore it", anew()],
        changed: words!["restore it", anew()],
        several: words!["restore them", anew()],
    }
}
