/** What each page is given, by page name. The texts themselves live in templates/locales: callers pass codes, never sentences. */
import type en from '../../templates/locales/en.json'

export type MessageKey = keyof typeof en
/** What stands between `Prefix` and `Suffix` in message keys: `Code<'login.error.'>` is `'invalid_credentials' | …`. */
export type Code<Prefix extends string, Suffix extends string = ''> = MessageKey extends infer Key
  ? Key extends `${Prefix}${infer Inner}${Suffix}`
    ? Inner
    : never
  : never

/**
 * Whose page it is. `name` is the organization's display name; `theme` a built-in one, an unknown one is the default;
 * `sheets` are the addresses of what is laid over it, the last one wins; `logo_dark` stands for `logo` where all is dark.
 */
export interface Brand {
  name: string
  theme?: string
  sheets?: string[]
  logo?: string
  logo_dark?: string
}

/** What every page needs. */
export interface Common {
  brand: Brand
  /** Shown beside errors, so that a person can quote it. */
  request_id?: string
}

export interface Person {
  /** Where both names are empty, the username stands for them. */
  first_name: string
  last_name: string
  username: string
  email: string
}

export interface PasswordRule {
  rule: Code<'rule.'>
  /** For `min_length`: characters; for `too_long`: bytes. */
  count?: number
  /** The refused password broke this rule. */
  failed?: boolean
}

/** `seconds`: how long to wait, for the codes that say so. */
export interface FormError<Codes> {
  code: Codes
  seconds?: number
}

export interface Login extends Common {
  action: string
  request: string
  csrf_token: string
  username?: string
  error?: FormError<Code<'login.error.'>>
  /** Absent when the person came without a client (a plain visit to /account). */
  client_name?: string
  providers?: { name: string; url: string; kind: string }[]
  /** Where a forgotten password is reset; no link without it. */
  reset_url?: string
  passkey?: { action: string; options: string }
}

/** Posts `username`. */
export interface ResetPassword extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  username?: string
  /** A mail is on its way, if there is such a user. */
  sent?: boolean
  error?: FormError<Code<'reset-password.error.'>>
}

/** Posts `token`; without the form it is done. */
export interface VerifyEmail extends Common {
  email: string
  /** `username`: of the account whose address it becomes, where it is not yet. */
  form?: { action: string; token: string; csrf_token: string; username?: string }
  /** Instead of the form, for whoever has to be signed in first. */
  sign_in_url?: string
  /** Where it is done, for whoever is signed in. */
  account_url?: string
  error?: 'taken' | 'domain'
}

/** Posts `code`, `recovery_code` or `credential`: what the form of the method has. */
export interface SecondFactor extends Common {
  action: string
  request: string
  csrf_token: string
  user: Person
  method: Code<'second-factor.lead.'>
  others: { method: Code<'second-factor.use.'>; url: string }[]
  /** For the browser to ask a passkey with, as JSON. */
  options?: string
  /** Where a lost passkey is replaced, when nothing here stands in for it. */
  replace_url?: string
  error?: FormError<Code<'second-factor.error.'>>
}

/** The choice of what to enrol: links alone. */
export interface Enrol extends Common {
  user: Person
  reason: Code<'enrol.reason.'>
  choices: { kind: Code<'enrol.kind.'>; url: string }[]
  cancel_url?: string
}

interface EnrolForm extends Common {
  action: string
  request: string
  csrf_token: string
  user: Person
  error?: FormError<Code<'enrol.error.'>>
  cancel_url?: string
}

/** Posts `name` and `code`. The picture is a path of unit squares in a square of `size`. */
export interface EnrolTotp extends EnrolForm {
  qr: { size: number; path: string }
  key: string
  uri: string
}

/** Posts `name` and `credential`. */
export interface EnrolPasskey extends EnrolForm {
  options: string
}

/** Shown once. */
export interface RecoveryCodes extends Common {
  user: Person
  codes: string[]
  continue_url: string
}

/** Answers `login=<handle>`, or `login=other` to sign in as somebody else. */
export interface SelectAccount extends Common {
  action: string
  request: string
  csrf_token: string
  client_name?: string
  accounts: (Person & { login: string; organization?: string })[]
}

/** Answers `decision=approve|deny` with `fields` as hidden fields. */
export interface Consent extends Common {
  action: string
  client: { name: string; description?: string }
  user: Person
  /** The granted scopes; `description` overrides the built-in text. */
  scopes: { name: string; description?: string }[]
  fields: {
    client_id: string
    scope: string
    state: string
    code_challenge: string
    redirect_uri: string
    csrf_token: string
    nonce?: string
    request: string
  }
}

/** Posts `current_password` (when asked), `password`, `password_repeat`, and `request` or `token` when given. */
export interface ChangePassword extends Common {
  action: string
  csrf_token: string
  request?: string
  /** Of a single-use link. */
  token?: string
  reason: Code<'change-password.reason.'>
  user: Person
  ask_current: boolean
  rules: PasswordRule[]
  error?: FormError<Code<'change-password.error.'>>
  cancel_url?: string
}

interface FromProvider extends Common {
  action: string
  csrf_token: string
  provider: { name: string; kind: string }
  client_name?: string
  /** Back to the other ways of signing in. */
  cancel_url: string
}

/** Somebody arrived whose address a user has already. Posts `password`, that user's. */
export interface LinkAccount extends FromProvider {
  email: string
  error?: FormError<Code<'link-account.error.'>>
}

type ProfileField = 'first_name' | 'last_name' | 'email'

/** Somebody new arrived, of whom the provider did not say enough. Posts the `missing` fields. */
export interface CompleteProfile extends FromProvider {
  missing: readonly ProfileField[]
  /** What the provider said. */
  email?: string
  values?: Partial<Record<ProfileField, string>>
  errors?: Partial<Record<ProfileField, Code<'set-up.error.'>>>
}

type SetUpField = 'username' | 'email' | 'first_name' | 'last_name'

/** The first administrator. Posts `token`, username, email, first_name, last_name, `password`, `password_repeat`. */
export interface SetUp extends Common {
  action: string
  csrf_token: string
  token: string
  values?: Partial<Record<SetUpField, string>>
  /** By field; a broken password rule is marked in `rules` with `password: 'policy'` here. */
  errors?: Partial<Record<SetUpField | 'password' | 'password_repeat', Code<'set-up.error.'>>>
  rules: PasswordRule[]
}

export interface SignedIn extends Common {
  user: Person
  account_url: string
}

/** Posts `csrf_token` and `fields`. */
export interface LogoutConfirm extends Common {
  action: string
  csrf_token: string
  user?: Person
  client_name?: string
  fields?: Record<string, string>
  cancel_url: string
}

export interface LoggedOut extends Common {
  client_name?: string
  /** The client asked to go back to an address that it has not registered. */
  is_unregistered?: boolean
  /** Back to the application, or to a fresh login. */
  return_url?: string
  login_url?: string
}

export type Deleted = Common

export interface ErrorPage extends Common {
  code: Code<'error.', '.title'>
  seconds?: number
  /** A place where the person can start again. */
  retry_url?: string
}

/** Around every page of a person's own. */
export interface AccountFrame extends Common {
  csrf_token: string
  logout_action: string
  /** Whether the person may change their own profile. */
  may_change: boolean
}

/** The forms post `csrf_token` and `factor_id`; to `rename_action` `name` as well, to `codes_action` nothing more. */
export interface AccountSecurity extends AccountFrame {
  factors: {
    id: string
    type: Code<'enrol.kind.'>
    name: string
    /** ISO 8601, as the next. */
    created_at: string
    last_active_at?: string
  }[]
  may_remove: boolean
  /** Recovery codes that were not used yet. */
  codes_left: number
  now: number
  /** Absent where there are as many as there may be. */
  add_url?: string
  remove_action: string
  rename_action: string
  codes_action: string
  change_password_url?: string
  notice?: Code<'account-security.notice.'>
}

/** Posts `first_name`, `last_name` and `email`. */
export interface AccountProfile extends AccountFrame {
  action: string
  username: string
  values: Record<'first_name' | 'last_name' | 'email', string>
  errors?: Partial<Record<'first_name' | 'last_name' | 'email', Code<'set-up.error.'>>>
  /** How long to wait, for `throttled`. */
  seconds?: number
  /** Where no mail goes out nobody can show that an address is theirs: it stays. */
  fixed_email?: string
  /** Sends the mail that shows whose address it is; there while that is not known, and where mail goes out. */
  verify_action?: string
  /** The address that the mail goes to, if it is to become the person's; posting `discard` forgets it. */
  pending_email?: string
  notice?: Code<'account-profile.notice.'>
}

/** Posts `client_id`. */
export interface AccountApplications extends AccountFrame {
  /** `created_at`: since when it is allowed what it asked for; absent where it need not ask. */
  applications: { client_id: string; client_name: string; scopes: string[]; created_at?: string }[]
  now: number
  disconnect_action: string
  notice?: Code<'account-applications.notice.'>
}

/** Deletion posts `username`. */
export interface AccountData extends AccountFrame {
  username: string
  download_action: string
  delete_action: string
  /** Absent where the organization does not allow it. */
  deletion?: Code<'account-data.deletion.'>
  error?: FormError<Code<'account-data.error.'>>
}

interface Place {
  user_agent: string
  location: string
  ip_address: string
}

interface SessionRow extends Place {
  id: string
  client_name: string
  /** ISO 8601. */
  last_active_at: string
}

/**
 * Logins and sessions as the store has them. Signing a browser out posts `login_id` to `login_action`, signing out of one client
 * `session_id` to `session_action`; signing out here posts to `logout_action`.
 */
export interface Account extends AccountFrame {
  user: Person & { email_verified: boolean; organization: string }
  /** This browser first, each with the sessions that came from it. */
  logins: (Place & {
    id: string
    /** ISO 8601. */
    signed_in_at: string
    /** It is the one that is looking at the page. */
    current: boolean
    sessions: SessionRow[]
  })[]
  /** Those whose login is over. */
  sessions: SessionRow[]
  /** Milliseconds, to say how long ago. */
  now: number
  login_action: string
  session_action: string
  /** Absent where there is nothing else. */
  others_action?: string
  /** Absent for a person who may not change their own profile. */
  change_password_url?: string
  /** Other ways in. Linking posts `provider`; unlinking posts `provider` and `subject`. */
  identities?: {
    link_action: string
    unlink_action: string
    /** `may_unlink`: the only way in is never given up. */
    linked: {
      provider: string
      name: string
      kind: string
      subject: string
      label: string
      may_unlink: boolean
    }[]
    available: { provider: string; name: string; kind: string }[]
  }
  notice?: Code<'account.notice.'>
}

export interface Pages {
  login: Login
  'reset-password': ResetPassword
  'verify-email': VerifyEmail
  'second-factor': SecondFactor
  enrol: Enrol
  'enrol-totp': EnrolTotp
  'enrol-passkey': EnrolPasskey
  'recovery-codes': RecoveryCodes
  'select-account': SelectAccount
  consent: Consent
  'change-password': ChangePassword
  'set-up': SetUp
  'link-account': LinkAccount
  'complete-profile': CompleteProfile
  'signed-in': SignedIn
  'logout-confirm': LogoutConfirm
  'logged-out': LoggedOut
  deleted: Deleted
  error: ErrorPage
  account: Account
  'account-security': AccountSecurity
  'account-profile': AccountProfile
  'account-applications': AccountApplications
  'account-data': AccountData
}

export const personOf = ({ first_name, last_name, username, email }: Person): Person => ({
  first_name,
  last_name,
  username,
  email,
})
