//! The people of a tenant: nobody logs in, so members are made by command.

use clap::{Args, Subcommand, ValueEnum};
use cloakroom::config::Config;
use cloakroom::members::{self, Email, InvitationLink, NewInvitation, NewMember, Role};
use cloakroom::tenants;
use uuid::Uuid;

use crate::manage::open;

#[derive(Subcommand)]
pub(crate) enum MemberCommand {
    /// Add a member
    Add(MemberAdd),
    /// List the members of a tenant, the newest first
    List {
        #[arg(long)]
        tenant: Uuid,
    },
}

#[derive(Args)]
pub(crate) struct MemberAdd {
    #[arg(long)]
    tenant: Uuid,
    #[arg(long)]
    email: String,
    #[arg(long, value_enum, default_value = "admin")]
    role: RoleName,
    /// The one owner of the tenant, which it must not have yet
    #[arg(long, conflicts_with = "role")]
    owner: bool,
    #[arg(long, value_name = "NAME")]
    first_name: Option<String>,
    #[arg(long, value_name = "NAME")]
    last_name: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum InvitationCommand {
    /// Invite somebody; the link is shown once
    Create {
        #[arg(long)]
        tenant: Uuid,
        #[arg(long)]
        email: String,
        #[arg(long, value_enum, default_value = "admin")]
        role: RoleName,
    },
    /// List the invitations of a tenant, the newest first
    List {
        #[arg(long)]
        tenant: Uuid,
    },
    /// Let an invitation live for another 72 hours, with a new link that is shown once
    Resend {
        #[arg(long)]
        tenant: Uuid,
        #[arg(long)]
        invitation: Uuid,
    },
    /// Make the holder of a link a member
    Accept {
        #[arg(long)]
        tenant: Uuid,
        /// What `create` or `resend` showed
        #[arg(long)]
        link: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RoleName {
    Admin,
    ReadOnly,
}

impl RoleName {
    fn role(self) -> Role {
        match self {
            Self::Admin => Role::Admin,
            Self::ReadOnly => Role::ReadOnly,
        }
    }
}

pub(crate) async fn member(config: Config, command: MemberCommand) -> anyhow::Result<()> {
    let vault = open(config).await?;
    match command {
        MemberCommand::Add(add) => {
            let tenant = tenants::find(&vault, add.tenant).await?;
            let new = NewMember {
                email: email(&add.email)?,
                role: match add.owner {
                    true => Role::Owner,
                    false => add.role.role(),
                },
                first_name: add.first_name,
                last_name: add.last_name,
            };
            let member = members::add(&vault, tenant.id, new).await?;
            say!("member {}", member.id);
        }
        MemberCommand::List { tenant } => {
            let tenant = tenants::find(&vault, tenant).await?;
            for member in members::all(&vault, tenant.id).await? {
                let (role, email) = (member.role.name(), member.user.email.as_str());
                say!("{}  {role:9}  {email}", member.id);
            }
        }
    }
    vault.audit.close().await;
    Ok(())
}

pub(crate) async fn invitation(config: Config, command: InvitationCommand) -> anyhow::Result<()> {
    let vault = open(config).await?;
    match command {
        InvitationCommand::Create {
            tenant,
            email: address,
            role,
        } => {
            let tenant = tenants::find(&vault, tenant).await?;
            let new = NewInvitation {
                email: email(&address)?,
                role: role.role(),
            };
            let (invitation, link) = members::invite_by_command(&vault, tenant.id, &new).await?;
            say!("invitation {}", invitation.id);
            show(tenant.id.uuid, &link);
        }
        InvitationCommand::List { tenant } => {
            let tenant = tenants::find(&vault, tenant).await?;
            for invitation in members::all_invitations(&vault, tenant.id).await? {
                let (role, status) = (invitation.role.name(), invitation.status.name());
                let email = invitation.email.as_str();
                say!("{}  {role:9}  {status:7}  {email}", invitation.id);
            }
        }
        InvitationCommand::Resend { tenant, invitation } => {
            let tenant = tenants::find(&vault, tenant).await?;
            let (invitation, link) =
                members::resend_by_command(&vault, tenant.id, invitation).await?;
            say!("invitation {}", invitation.id);
            show(tenant.id.uuid, &link);
        }
        InvitationCommand::Accept { tenant, link } => {
            let tenant = tenants::find(&vault, tenant).await?;
            let member = members::accept(&vault, tenant.id, &link).await?;
            say!("member {}", member.id);
        }
    }
    vault.audit.close().await;
    Ok(())
}

fn email(text: &str) -> anyhow::Result<Email> {
    Email::parse(text).map_err(|rule| anyhow::anyhow!("--email {rule}"))
}

fn show(tenant: Uuid, link: &InvitationLink) {
    say!("link {}", link.expose());
    say!("this is the only time the link is shown; it works for 72 hours");
    say!("next: `cloakroom invitation accept --tenant {tenant} --link LINK`");
}
