//! `cloakroom member` and `cloakroom invitation`: members have no login, so commands create them.

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
    /// List the members of a tenant, newest first
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
    /// Make this member the owner; a tenant has only one
    #[arg(long, conflicts_with = "role")]
    owner: bool,
    #[arg(long, value_name = "NAME")]
    first_name: Option<String>,
    #[arg(long, value_name = "NAME")]
    last_name: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum InvitationCommand {
    /// Invite a member; prints the link, which is shown only once
    Create {
        #[arg(long)]
        tenant: Uuid,
        #[arg(long)]
        email: String,
        #[arg(long, value_enum, default_value = "admin")]
        role: RoleName,
    },
    /// List the invitations of a tenant, newest first
    List {
        #[arg(long)]
        tenant: Uuid,
    },
    /// Extend an invitation by 72 hours; prints a new link, which is shown only once
    Resend {
        #[arg(long)]
        tenant: Uuid,
        #[arg(long)]
        invitation: Uuid,
    },
    /// Accept an invitation: make the holder of the link a member
    Accept {
        #[arg(long)]
        tenant: Uuid,
        /// Link printed by `create` or `resend`
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
            print_line!("member {}", member.id);
        }
        MemberCommand::List { tenant } => {
            let tenant = tenants::find(&vault, tenant).await?;
            for member in members::all(&vault, tenant.id).await? {
                let (role, email) = (member.role.name(), member.user.email.as_str());
                print_line!("{}  {role:9}  {email}", member.id);
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
            let (invitation, link) = members::invite_as_operator(&vault, tenant.id, &new).await?;
            print_line!("invitation {}", invitation.id);
            print_link(tenant.id.uuid, &link);
        }
        InvitationCommand::List { tenant } => {
            let tenant = tenants::find(&vault, tenant).await?;
            for invitation in members::list_invitations_as_operator(&vault, tenant.id).await? {
                let (role, status) = (invitation.role.name(), invitation.status.name());
                let email = invitation.email.as_str();
                print_line!("{}  {role:9}  {status:7}  {email}", invitation.id);
            }
        }
        InvitationCommand::Resend { tenant, invitation } => {
            let tenant = tenants::find(&vault, tenant).await?;
            let (invitation, link) =
                members::resend_as_operator(&vault, tenant.id, invitation).await?;
            print_line!("invitation {}", invitation.id);
            print_link(tenant.id.uuid, &link);
        }
        InvitationCommand::Accept { tenant, link } => {
            let tenant = tenants::find(&vault, tenant).await?;
            let member = members::accept(&vault, tenant.id, &link).await?;
            print_line!("member {}", member.id);
        }
    }
    vault.audit.close().await;
    Ok(())
}

fn email(text: &str) -> anyhow::Result<Email> {
    Email::parse(text).map_err(|rule| anyhow::anyhow!("--email {rule}"))
}

fn print_link(tenant: Uuid, link: &InvitationLink) {
    print_line!("link {}", link.expose());
    print_line!("this link is shown only once; it is valid for 72 hours");
    print_line!("next: `cloakroom invitation accept --tenant {tenant} --link LINK`");
}
