/** What each page is given, by page name. The texts themselves live in templates/locales: callers pass codes, never sentences. */
import type en from '../../templates/locales/en.json'

export type MessageKey = keyof typeof en
/** What stands between `Prefix` and `Suffix` in message keys: `Code<'login.error.'>` is `'invalid_credentials' | …`. */
export type Code<Prefix extends string, Suffix extends string = ''> = MessageKey extends infer Key
  ? Key extends `${Prefix}${infer Inner}${Suffix}`
    ? Inner
    : never
  : never

/** What every page needs. `name` is the organization's display name; an unknown `theme` is the default one. */
export interface Common {
  brand: { name: string; theme?: string; logo?: string }
  /** Shown beside errors, so that a person can quote it. */
  request_id?: string
}

export interface Person {
  /** First and last name; may be empty, the username then stands for it. */
  name: string
  username: string
  email: string
}

export interface PasswordRule {
  rule: Code<'rule.'>
  /** For `min_length`: characters. */
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
  /** Back to the application, or to a fresh login. */
  return_url?: string
  login_url?: string
}

export interface ErrorPage extends Common {
  code: Code<'error.', '.title'>
  seconds?: number
  /** A place where the person can start again. */
  retry_url?: string
}

/** Session rows as the store has them. Signing one out posts `session_id` to `session_action`; signing out, to `logout_action`. */
export interface Account extends Common {
  user: Person & { email_verified: boolean; organization: string }
  sessions: {
    id: string
    client_name: string
    user_agent: string
    location: string
    ip_address: string
    /** ISO 8601. */
    last_active_at: string
    /** It came from the login that is looking at the page. */
    current: boolean
  }[]
  /** Milliseconds, to say how long ago. */
  now: number
  csrf_token: string
  session_action: string
  logout_action: string
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
  'select-account': SelectAccount
  consent: Consent
  'change-password': ChangePassword
  'set-up': SetUp
  'link-account': LinkAccount
  'complete-profile': CompleteProfile
  'signed-in': SignedIn
  'logout-confirm': LogoutConfirm
  'logged-out': LoggedOut
  error: ErrorPage
  account: Account
}
