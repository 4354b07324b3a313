//! Runs an approved export.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cloakroom_core::access::{Bucket, Container, Tenant};
use cloakroom_core::audit::{self, EntityKind, Entry, Operation, Outcome};
use cloakroom_core::{access_change, vault::Vault};
use cloakroom_crypto::{MerkleTree, Sensitive, leaf_hash, sha256};
use cloakroom_platform::failpoint;
use cloakroom_tokens::tokens::{self, ExportedToken, Snapshot, TokenVault};
use uuid::Uuid;

use super::approve::find;
use super::manifest::{Chunk, Manifest, sign};
use super::{Error, ExportRequest, MANIFEST_FILE, SIGNATURE_FILE, TOKENS_FILE, store};
use crate::transfer::{jwe, operator_caller};

/// Tokens of one JWE.
const CHUNK_TOKENS: usize = 1_000;

/// Exports the tokens of an approved request to a new folder. The request is removed in the transaction in which the folder
/// appears: it is published once, and not if it was canceled meanwhile.
///
/// Every token is in the audit log before its chunk is written. The folder appears when it is complete; before that, it has
/// the extension `partial`, and is locked.
pub async fn run(
    vault: &TokenVault,
    tenant: &Tenant,
    id: Uuid,
    folder: &Path,
    mut progress: impl FnMut(u64),
) -> Result<Manifest, Error> {
    let folder = &normalize(folder)?;
    let request = begin(vault, tenant, id).await?;
    let partial = PartialFolder::create(folder)?;
    let mut writer = ChunkWriter::create(&partial.path.join(TOKENS_FILE), &request)?;
    let (checkpoint, at) = (newest_checkpoint(vault).await?, vault.clock.now().await?);
    let snapshot = Snapshot::open(vault).await?;
    let caller = operator_caller(vault, tenant, Uuid::nil());
    let counted = snapshot.count(&caller, &request.filter).await?;
    let selection = (&request.filter, CHUNK_TOKENS);
    let mut failure = None;
    let read = snapshot.read_all(vault, &caller, selection, async |tokens| {
        let written = writer.write(vault, tokens).await;
        progress(writer.tokens);
        failpoint("export.written")?;
        written.map_err(|error| {
            failure = Some(error);
            tokens::Error::Contended
        })
    });
    let read = read.await;
    if let Some(error) = failure {
        return Err(error);
    }
    read?;
    let (chunks, ids_root) = writer.finish()?;
    let exported = chunks.iter().map(|chunk| chunk.tokens).sum();
    if exported != counted {
        return Err(Error::Mismatch { exported, counted });
    }
    let filter = &request.filter;
    let manifest = Manifest {
        export: id,
        environment: vault.keys.environment().to_owned(),
        tenant: tenant.id.uuid,
        tenant_name: tenant.name.clone(),
        tenant_type: tenant.kind.name().to_owned(),
        container: filter
            .container
            .as_ref()
            .map(|it| Container::as_str(it).to_owned()),
        kind: filter.kind.map(|kind| kind.name().to_owned()),
        reason: request.reason.clone(),
        requested_by: request.requested_by.clone(),
        approved_by: request.approved_by.clone().unwrap_or_default(),
        receiver: request.receiver.fingerprint(),
        at,
        tokens: exported,
        ids_root,
        chunks,
        checkpoint,
    };
    publish(vault, tenant, (&request, &manifest), (&partial, folder)).await?;
    Ok(manifest)
}

/// Verifies that the request is approved and current, and records that it runs.
async fn begin(vault: &Vault, tenant: &Tenant, id: Uuid) -> Result<ExportRequest, Error> {
    let now = vault.clock.now().await?;
    let change = access_change::begin(vault, tenant.id, &[Bucket::RESOURCES]).await?;
    let approved = async {
        let (request, _) = find(vault, &change, tenant, id).await?;
        request.require_approval(now)?;
        // SQL can restore the row of an ended request together with the state of its bucket.
        let (place, since) = ((EntityKind::Export, &*id.to_string()), request.requested_at);
        match audit::is_deleted(&vault.audit, tenant.id, place, since).await? {
            true => Err(Error::Ended(id)),
            false => Ok(request),
        }
    };
    match approved.await {
        Ok(request) => {
            let entry = Entry::by_system(tenant.id.number, Operation::Use, EntityKind::Export, id);
            change.commit(&[entry]).await?;
            Ok(request)
        }
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

async fn newest_checkpoint(vault: &Vault) -> Result<Option<String>, Error> {
    let number = vault.audit.newest_checkpoint().await?;
    let newest = audit::unshipped(&vault.audit, number - 1).await?;
    Ok(newest.first().map(|checkpoint| checkpoint.line()))
}

/// Writes the signed manifest, removes the request, and makes the folder appear. A process that is killed before the commit
/// leaves a complete folder, and the request, which can run again.
async fn publish(
    vault: &Vault,
    tenant: &Tenant,
    (request, manifest): (&ExportRequest, &Manifest),
    (partial, folder): (&PartialFolder, &Path),
) -> Result<(), Error> {
    let text = manifest.to_text();
    let signature = sign(vault.keys.audit_authority(), &text).await?;
    for (name, content) in [(MANIFEST_FILE, text.as_str()), (SIGNATURE_FILE, &signature)] {
        let path = partial.path.join(name);
        let mut file = create_file(&path)?;
        let written = file
            .write_all(content.as_bytes())
            .and_then(|()| file.sync_all());
        written.map_err(|error| failed(&path, &error))?;
    }
    let mut change = access_change::begin(vault, tenant.id, &[Bucket::RESOURCES]).await?;
    let published = async {
        let (found, row_mac) = find(vault, &change, tenant, request.id).await?;
        if found != *request {
            return Err(Error::Altered(request.id));
        }
        store::remove(&change, tenant.id, request.id).await?;
        change.remove(Bucket::RESOURCES, &row_mac)?;
        partial.publish(folder)?;
        failpoint("export.published")?;
        Ok(())
    };
    if let Err(error) = published.await {
        change.roll_back().await;
        return Err(error);
    }
    let id = format!(
        "{}: {} tokens, manifest {}",
        manifest.export,
        manifest.tokens,
        hex::encode(sha256(text.as_bytes())),
    );
    let entry = Entry::by_system(tenant.id.number, Operation::Use, EntityKind::Export, id);
    let entry = entry.with_outcome(Outcome::Revealed);
    let (number, operation) = (tenant.id.number, Operation::Delete);
    let removed = Entry::by_system(number, operation, EntityKind::Export, manifest.export);
    change.commit(&[entry, removed]).await?;
    Ok(())
}

/// The folder under its temporary name.
struct PartialFolder {
    path: PathBuf,
    /// Locked, so that two runs do not write the same files.
    file: File,
}

impl PartialFolder {
    /// Creates the folder. What an interrupted run left there is encrypted, and replaced.
    fn create(folder: &Path) -> Result<Self, Error> {
        let refused = |path: &Path, reason: &str| Error::File {
            path: path.display().to_string(),
            reason: reason.to_owned(),
        };
        if folder.symlink_metadata().is_ok() {
            return Err(refused(folder, "it exists already"));
        }
        let mut name = folder.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        let mut builder = std::fs::DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(&path);
        let opened = created.and_then(|()| File::open(&path));
        let file = opened.map_err(|error| failed(&path, &error))?;
        // Some network file systems cannot lock folders. A request is published once nevertheless.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(refused(&path, "another process is writing it"));
        }
        for name in [TOKENS_FILE, MANIFEST_FILE, SIGNATURE_FILE] {
            // Absent, unless an earlier run was interrupted.
            let _ = std::fs::remove_file(path.join(name));
        }
        Ok(Self { path, file })
    }

    /// Gives the folder its name, durably.
    fn publish(&self, folder: &Path) -> Result<(), Error> {
        let synced = self.file.sync_all();
        synced.map_err(|error| failed(&self.path, &error))?;
        std::fs::rename(&self.path, folder).map_err(|error| failed(folder, &error))?;
        let parent = match folder.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let synced = File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(|error| failed(parent, &error))
    }
}

/// The path without a slash at its end, which would put the temporary folder into the folder.
fn normalize(folder: &Path) -> Result<PathBuf, Error> {
    match folder.file_name() {
        Some(_) => Ok(folder.components().collect()),
        None => Err(Error::File {
            path: folder.display().to_string(),
            reason: "it must have a name".to_owned(),
        }),
    }
}

/// Creates a file that only its owner can read.
fn create_file(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(0o600).open(path);
    created.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::File {
        path: path.display().to_string(),
        reason: error.kind().to_string(),
    }
}

/// Writes chunks, each encrypted to the receiver's key.
struct ChunkWriter<'a> {
    request: &'a ExportRequest,
    path: PathBuf,
    file: BufWriter<File>,
    chunks: Vec<Chunk>,
    ids: MerkleTree,
    tokens: u64,
}

impl<'a> ChunkWriter<'a> {
    fn create(path: &Path, request: &'a ExportRequest) -> Result<Self, Error> {
        Ok(Self {
            request,
            path: path.to_owned(),
            file: BufWriter::new(create_file(path)?),
            chunks: Vec::new(),
            ids: MerkleTree::default(),
            tokens: 0,
        })
    }

    /// Records a chunk in the audit log, then encrypts and writes it.
    async fn write(&mut self, vault: &Vault, tokens: Vec<ExportedToken>) -> Result<(), Error> {
        let count = tokens.len() as u64;
        let bytes = tokens.iter().map(|token| token.line.expose().len() + 1);
        let mut lines = Sensitive::new(String::with_capacity(bytes.sum()));
        let mut entries = Vec::with_capacity(tokens.len());
        for token in tokens {
            lines.expose_mut().push_str(token.line.expose());
            lines.expose_mut().push('\n');
            self.ids.push(leaf_hash(token.id.as_bytes()));
            entries.push(token.entry);
        }
        audit::begin(&vault.audit).await?.commit(&entries).await?;
        let line = jwe::encrypt(&self.request.receiver, lines.expose().as_bytes());
        let line = line.ok_or(Error::Receiver)?;
        let written = self.file.write_all(line.as_bytes());
        let written = written.and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|error| failed(&self.path, &error))?;
        self.tokens += count;
        self.chunks.push(Chunk {
            tokens: count,
            sha256: hex::encode(sha256(line.as_bytes())),
        });
        Ok(())
    }

    /// Makes the file durable. Returns its chunks and the root of the ids.
    fn finish(mut self) -> Result<(Vec<Chunk>, String), Error> {
        let flushed = self.file.flush();
        let flushed = flushed.and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|error| failed(&self.path, &error))?;
        Ok((self.chunks, hex::encode(self.ids.root())))
    }
}
