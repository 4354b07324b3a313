//! Runs an approved export.

use std::fs::{File, OpenOptions};
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

use super::approve::{find, remove};
use super::manifest::{Chunk, Manifest, sign};
use super::{Error, ExportRequest, MANIFEST_FILE, SIGNATURE_FILE, TOKENS_FILE};
use crate::transfer::{jwe, operator_caller};

/// Tokens of one JWE.
const CHUNK_TOKENS: usize = 1_000;

/// Exports the tokens of an approved request to a new folder. The request is removed: it runs once.
///
/// Every token is in the audit log before its chunk is written. The folder appears when it is complete; before that, it has
/// the extension `partial`.
pub async fn run(
    vault: &TokenVault,
    tenant: &Tenant,
    id: Uuid,
    folder: &Path,
    mut progress: impl FnMut(u64),
) -> Result<Manifest, Error> {
    let request = begin(vault, tenant, id).await?;
    let partial = create_folder(folder)?;
    let mut writer = ChunkWriter::create(&partial.join(TOKENS_FILE), &request)?;
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
    publish(vault, tenant, (&manifest, &partial), folder).await?;
    Ok(manifest)
}

/// Verifies that the request is approved and current, and records that it runs.
async fn begin(vault: &Vault, tenant: &Tenant, id: Uuid) -> Result<ExportRequest, Error> {
    let now = vault.clock.now().await?;
    let change = access_change::begin(vault, tenant.id, &[Bucket::RESOURCES]).await?;
    let approved = async {
        let (request, _) = find(vault, &change, tenant, id).await?;
        request.require_approval(now)?;
        Ok(request)
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

/// Writes the signed manifest, makes the folder appear, and removes the request.
async fn publish(
    vault: &Vault,
    tenant: &Tenant,
    (manifest, partial): (&Manifest, &Path),
    folder: &Path,
) -> Result<(), Error> {
    let text = manifest.to_text();
    let signature = sign(vault.keys.audit_authority(), &text).await?;
    for (name, content) in [(MANIFEST_FILE, text.as_str()), (SIGNATURE_FILE, &signature)] {
        let path = partial.join(name);
        let mut file = create_file(&path)?;
        let written = file
            .write_all(content.as_bytes())
            .and_then(|()| file.sync_all());
        written.map_err(|error| failed(&path, &error))?;
    }
    std::fs::rename(partial, folder).map_err(|error| failed(folder, &error))?;
    failpoint("export.published")?;
    let id = format!(
        "{}: {} tokens, manifest {}",
        manifest.export,
        manifest.tokens,
        hex::encode(sha256(text.as_bytes())),
    );
    let entry = Entry::by_system(tenant.id.number, Operation::Use, EntityKind::Export, id);
    let entry = entry.with_outcome(Outcome::Revealed);
    remove(vault, tenant, manifest.export, entry).await
}

/// Creates the folder under its temporary name. What an interrupted run left there is encrypted, and replaced.
fn create_folder(folder: &Path) -> Result<PathBuf, Error> {
    if folder.exists() {
        let reason = "it exists already".to_owned();
        let path = folder.display().to_string();
        return Err(Error::File { path, reason });
    }
    let mut name = folder.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    for file in [TOKENS_FILE, MANIFEST_FILE, SIGNATURE_FILE] {
        // Absent, unless an earlier run was interrupted.
        let _ = std::fs::remove_file(partial.join(file));
    }
    let mut builder = std::fs::DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(&partial);
    created.map_err(|error| failed(&partial, &error))?;
    Ok(partial)
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
