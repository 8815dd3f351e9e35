/**
 * The data of each page, by page name. Callers pass codes, never sentences: the texts are in
 * templates/locales. Over 300 lines on purpose: one file shows all data that a template can use.
 */
import type en from '../../templates/locales/en.json'

/** Key of a text in `templates/locales`. */
export type MessageKey = keyof typeof en
/**
 * The part of message keys between `Prefix` and `Suffix`: `Code<'login.error.'>` is `'invalid_credentials' |
 * …`.
 */
export type MessageCode<Prefix extends string, Suffix extends string = ''> = MessageKey extends infer Key
  ? Key extends `${Prefix}${infer Inner}${Suffix}`
    ? Inner
    : never
  : never

/**
 * The branding of a page. `name` is the organization's display name; `theme` is a built-in theme, and an
 * unknown name means the default. `sheets` are the URLs of further stylesheets, the last one wins;
 * `logo_dark` replaces `logo` in the dark scheme.
 */
export interface Brand {
  name: string
  theme?: string
  sheets?: string[]
  /** Accent colour, `#rrggbb`, when the organization sets its own. */
  accent?: string
  /** Links of the footer. */
  links?: Partial<Record<'terms_url' | 'privacy_url' | 'support_url', string | undefined>>
  logo?: string
  logo_dark?: string
}

/** Data of every page. */
export interface Common {
  brand: Brand
  /** Shown with errors; users quote it to their administrator. */
  request_id?: string
}

/** A user as a page shows them. */
export interface PageUser {
  /** The username is shown when both names are empty. */
  first_name: string
  last_name: string
  username: string
  email: string
}

/** A rule of the password policy, as the page lists it. */
export interface PasswordRule {
  rule: MessageCode<'rule.'>
  /** For `min_length`: characters; for `too_long`: bytes. */
  count?: number
  /** The refused password broke this rule. */
  failed?: boolean
}

/** `seconds` is the time to wait, for codes whose text mentions it. */
export interface FormError<Codes> {
  code: Codes
  seconds?: number
}

/** Posts `username`, `password` and, where the page asks for it, `organization`. */
export interface LoginPage extends Common {
  action: string
  request: string
  csrf_token: string
  username?: string
  /** The name that was typed; without it the page does not ask for an organization. */
  organization?: string
  error?: FormError<MessageCode<'login.error.'>>
  /** Absent when no client sent the user (a visit to /account). */
  client_name?: string
  providers?: { name: string; url: string; kind: string }[]
  /** Without it the page says that an administrator can help. */
  reset_url?: string
  /** Present where a code by mail is a way to sign in. */
  code_url?: string
  /** Present where people may register themselves. */
  sign_up_url?: string
  passkey?: { action: string; options: string; recover_url: string }
}

/**
 * Login page of a user who is logged in. Posts `password`; `has_password` is false for accounts without a
 * password.
 */
export interface ConfirmPage extends Omit<LoginPage, 'username' | 'organization' | 'client_name'> {
  user: PageUser
  has_password: boolean
  cancel_url: string
}

/** Posts `username` and, where the page asks for it, `organization`. */
export interface ResetPasswordPage extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  username?: string
  /** The name that was typed; without it the page does not ask for an organization. */
  organization?: string
  /** True after the form was posted, whether or not the user exists. */
  sent?: boolean
  error?: FormError<MessageCode<'reset-password.error.'>>
}

/** Posts `request`, `csrf_token` and `email`. */
export interface SignUpPage extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  /** True where an administrator approves each registration. */
  waits: boolean
  email?: string
  /** True after the form was posted, whether or not the address has a user. */
  sent?: boolean
  error?: FormError<'email' | 'domain' | 'throttled'>
}

/** Posts `token`. Without `form` the page reports success. */
export interface VerifyEmailPage extends Common {
  email: string
  /** `username` names the account whose address changes; absent when the address is only verified. */
  form?: { action: string; token: string; csrf_token: string; username?: string }
  /** Replaces the form when the user has to sign in first. */
  sign_in_url?: string
  /** Link to the account once the address is verified, for users who are signed in. */
  account_url?: string
  error?: 'taken' | 'domain'
}

/**
 * The exit of a step: a link back to the page that asked for it, or a form for another account (posts
 * `fields`).
 */
export interface StepExit {
  cancel_url?: string
  other?: { action: string; fields: Record<string, string> }
}

/** Posts `code`, `recovery_code` or `credential`, by method. */
export interface SecondFactorPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  user: PageUser
  method: MessageCode<'second-factor.lead.'>
  others: { method: MessageCode<'second-factor.use.'>; url: string }[]
  /** Days for which the browser may be remembered (`remember`). */
  remember_days?: number | undefined
  /** WebAuthn request options as JSON. */
  options?: string
  /** Link to replace a lost passkey, when no method here can stand in for it. */
  replace_url?: string
  error?: FormError<MessageCode<'second-factor.error.'>>
}

/** The choice of the factor to enrol. The page has links and no form. */
export interface EnrolPage extends Common, StepExit {
  /** With `request`, the page's own address. */
  action: string
  request: string
  user: PageUser
  reason: MessageCode<'enrol.reason.'>
  choices: { kind: MessageCode<'enrol.kind.'>; url: string }[]
}

interface EnrolForm extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  user: PageUser
  error?: FormError<MessageCode<'enrol.error.'>>
}

/** Posts `code`. The QR code is an SVG path of unit squares in a square of `size`. */
export interface EnrolTotpPage extends EnrolForm {
  qr: { size: number; path: string }
  key: string
  uri: string
}

/** Posts `credential`. */
export interface EnrolPasskeyPage extends EnrolForm {
  options: string
}

/** Offers a passkey after a password. The second form, `later_action`, declines. */
export interface OfferPasskeyPage extends EnrolPasskeyPage {
  later_action: string
}

/** Posts `username`, to which a code is sent; then, with `again_url`, posts `code`. */
export interface EmailCodePage extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  username?: string
  /** Present once a code was asked for. `given` is the code of the mail's link, to be sent by the button. */
  again_url?: string
  given?: string
  error?: FormError<MessageCode<'email-code.error.'> | 'throttled' | 'busy'>
}

/** Posts `username` and `recovery_code`: recovery without a password. */
export interface RecoverPage extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  username?: string
  error?: FormError<MessageCode<'recover.error.'> | 'throttled' | 'busy'>
}

/** Shown once. A tick leads on: a GET of `action`, with `request` as its query. */
export interface RecoveryCodesPage extends Common {
  user: PageUser
  codes: string[]
  /** URL of the server, which the saved codes name. */
  address: string
  /** ISO 8601. */
  created_at: string
  action: string
  request?: string
}

/** Answers `login=<handle>`, `login=other` to sign in as another user, or `forget=<handle>`. */
export interface SelectAccountPage extends Common {
  action: string
  request: string
  csrf_token: string
  client_name?: string
  accounts: (PageUser & { login: string; organization?: string })[]
}

/** Answers `decision=approve|deny` with `fields` as hidden fields. */
export interface ConsentPage extends Common, StepExit {
  action: string
  /**
   * `unverified` is set for a dynamic client; `loopback`: any program on the device can pose as the client.
   * `host` is the host of its metadata document.
   */
  client: {
    name: string
    description?: string
    logo?: string
    links?: Record<MessageCode<'consent.link.'>, string | null>
    unverified?: 'web' | 'loopback'
    host?: string
  }
  user: PageUser
  /** The APIs by their identifiers, and the granted scopes; `description` overrides the built-in text. */
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

/**
 * Posts `current_password` (with `ask_current`), `password`, `password_repeat`, and `request` or `token` when
 * present.
 */
export interface ChangePasswordPage extends Common, StepExit {
  action: string
  csrf_token: string
  request?: string
  /** The token of a single-use link. */
  token?: string
  /**
   * WebAuthn creation options as JSON, where a link lets its user choose a passkey instead (`credential`).
   */
  passkey_options?: string
  /** False where the organization requires passkeys: the page asks for no password. */
  takes_password?: false
  reason: MessageCode<'change-password.reason.'>
  user: PageUser
  ask_current: boolean
  rules: PasswordRule[]
  error?: FormError<MessageCode<'change-password.error.'> | 'passkey'>
}

interface ProviderPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  provider: { name: string; kind: string }
  client_name?: string
}

/**
 * Account linking: the provider's account has the address of an existing user. Posts that user's `password`.
 */
export interface LinkAccountPage extends ProviderPage {
  email: string
  error?: FormError<MessageCode<'link-account.error.'>>
}

type ProfileField = 'first_name' | 'last_name' | 'email'

/**
 * An attribute of the user. Posts `id`, a box only when it is ticked; `attributes` names the fields shown.
 */
export interface AttributeField {
  id: string
  label: string
  type: 'text' | 'checkbox'
  value: string
  required: boolean
  /** False: shown only. */
  editable: boolean
  error?: MessageCode<'set-up.error.'>
}

/** Shown to a user whom the client does not admit. */
export interface ExcludedPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  client: { name: string }
  user: PageUser
}

/** Terms of use: plain text, a page with them, or both. */
export interface Terms {
  version: string
  text: string
  url: string
}

/** Terms of the organization that the user has to accept. Posts `version` and the box `accept`. */
export interface TermsPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  user: PageUser
  terms: Terms
  error?: { code: 'missing' }
}

/** Required attributes that the user lacks. */
export interface AttributesPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  user: PageUser
  attributes: AttributeField[]
}

/** Just-in-time provisioning without all the claims that a user needs. Posts the `missing` fields. */
export interface CompleteProfilePage extends ProviderPage {
  missing: readonly ProfileField[]
  /** The address that the provider sent. */
  email?: string
  values?: Partial<Record<ProfileField, string>>
  errors?: Partial<Record<ProfileField, MessageCode<'set-up.error.'>>>
}

type NewUserField = 'username' | 'email' | 'first_name' | 'last_name'

/** The fields by which a page asks for a new user. */
export type NewUserFields = Record<NewUserField, string>

/** Errors of the fields of a new user. */
export type NewUserErrors = Partial<Record<NewUserField, MessageCode<'set-up.error.'>>>

/** Posts `token`, `username`, `email`, `first_name`, `last_name`, `password` and `password_repeat`. */
export interface SetUpPage extends Common {
  action: string
  csrf_token: string
  token: string
  values?: Partial<Record<NewUserField, string>>
  /** Errors by field. `password: 'policy'` means that `rules` marks the broken ones. */
  errors?: NewUserErrors & Partial<Record<'password' | 'password_repeat', MessageCode<'set-up.error.'>>>
  rules: PasswordRule[]
}

/**
 * An invitation. The first form posts `token`, `username`, `email` and the names; the second repeats them
 * with `password` and `password_repeat`, or with the `credential` of a new passkey; `edit` leads back. A
 * button of `providers` posts `token` and `provider`.
 */
export interface InvitationPage extends Common {
  action: string
  csrf_token: string
  token: string
  values: Partial<Record<NewUserField, string>>
  errors?: SetUpPage['errors']
  /** False for a user who exists and lacks only a credential. */
  is_new: boolean
  /** The invited address, which cannot be changed. */
  email?: string
  /** True for a person who registers. */
  is_registration: boolean
  /** Handle of the request that continues afterwards, if this browser made it. */
  request?: string
  /** The user who is signed in in this browser. */
  signed_in_as?: string
  /** Providers by which the person may come instead. */
  providers?: { alias: string; name: string; kind: string }[]
  /**
   * The second form: WebAuthn creation options as JSON where browsers have passkeys, and the password rules.
   */
  sign_in?: {
    options?: string
    takes_password: boolean
    rules: PasswordRule[]
    error?: 'passkey' | 'terms'
    /** Each form then posts `accept` and `version`. */
    terms?: Terms
  }
}

/** Shown when a user is signed in and no client waits. */
export interface SignedInPage extends Common {
  user: PageUser
  account_url: string
}

/**
 * Posts `fields` to the client's redirect URI (`action`): a script submits the form; without JavaScript a
 * button does.
 */
export interface FormPostPage extends Common {
  action: string
  client: { name: string }
  fields: Record<string, string | undefined>
}

/** Posts `csrf_token` and `fields`. */
export interface LogoutConfirmPage extends Common {
  action: string
  csrf_token: string
  user?: PageUser
  client_name?: string
  fields?: Record<string, string>
  cancel_url: string
}

/** Shown after a logout that does not redirect. */
export interface LoggedOutPage extends Common {
  client_name?: string
  /** True when the client sent a `post_logout_redirect_uri` that it has not registered. */
  is_unregistered?: boolean
  /** Leads back to the application; `login_url` leads to a new login. */
  return_url?: string
  login_url?: string
}

/** Shown after users have deleted their account. */
export interface DeletedPage extends Common {
  login_url: string
}

/** Shown for refusals that cannot be redirected, and for failures. */
export interface ErrorPage extends Common {
  code: MessageCode<'error.', '.title'>
  seconds?: number
  /** URL at which the user can start again; empty for the page itself. */
  retry_url?: string
  /** Explains a refused authorization request, in development mode. */
  request?: { reason: string; redirect_uri: string; registered: readonly string[] } | undefined
}

/** Data shared by the account pages. */
export interface AccountFrame extends Common {
  csrf_token: string
  logout_action: string
  /** True when the user may change their own profile. */
  may_change: boolean
}

/**
 * The forms post `csrf_token` and `factor_id`. `rename_action` also takes `name`; `codes_action` takes
 * `csrf_token` alone.
 */
export interface AccountSecurityPage extends AccountFrame {
  factors: {
    id: string
    type: MessageCode<'enrol.kind.'>
    name: string
    /** ISO 8601. */
    created_at: string
    /** ISO 8601. */
    last_active_at?: string
    /** Why the user may not remove it. */
    kept?: MessageCode<'account-security.kept.'>
  }[]
  /** The number of unused recovery codes. */
  codes_left: number
  now: number
  /** Absent when the user has the maximum number of factors. */
  add_url?: string
  /** Browsers that spare the second factor. Forgetting posts `browser_id`. */
  remembered: { id: string; user_agent: string; location: string; ip_address: string; until: string }[]
  forget_action: string
  remove_action: string
  rename_action: string
  codes_action: string
  /** `has_password` is false for a user who would choose the first one. */
  has_password: boolean
  change_password_url: string
  /** True when the user may sign in with a code by mail. */
  takes_email_code: boolean
  notice?: MessageCode<'account-security.notice.'>
}

/** Posts `first_name`, `last_name` and `email`. */
export interface AccountProfilePage extends AccountFrame {
  action: string
  username: string
  values: Record<'first_name' | 'last_name' | 'email', string>
  errors?: Partial<Record<'first_name' | 'last_name' | 'email', MessageCode<'set-up.error.'>>>
  attributes?: AttributeField[]
  /** Seconds to wait, for `throttled`. */
  seconds?: number
  /** The unchangeable address, without a mail server: users cannot prove that a new address is theirs. */
  fixed_email?: string
  /** Sends the verification mail; present while the address is unverified and a mail server is configured. */
  verify_action?: string
  /** The new address that awaits verification; posting `discard` cancels the change. */
  pending_email?: string
  user: PageUser
  /** Path of the picture. A file posts `picture`, the button `remove`, as multipart/form-data. */
  picture?: string
  picture_action: string
  picture_error?: MessageCode<'account-profile.picture.error.'>
  notice?: MessageCode<'account-profile.notice.'>
}

/** Posts `client_id`. */
export interface AccountApplicationsPage extends AccountFrame {
  /** `created_at` is the time of the consent (ISO 8601); absent for clients that need none. */
  applications: {
    client_id: string
    client_name: string
    logo?: string
    scopes: string[]
    created_at?: string
  }[]
  /** Applications that the user may start at `url`. */
  startable: { client_id: string; client_name: string; logo?: string; url: string }[]
  now: number
  disconnect_action: string
  notice?: MessageCode<'account-applications.notice.'>
}

/** Deletion posts `username`. */
export interface AccountDataPage extends AccountFrame {
  username: string
  download_action: string
  delete_action: string
  /** Absent when the organization does not allow users to delete their account. */
  deletion?: MessageCode<'account-data.deletion.'>
  error?: FormError<MessageCode<'account-data.error.'>>
  notice?: MessageCode<'account-data.notice.'>
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
 * Logins and sessions as stored. Signing a browser out posts `login_id` to `login_action`, signing out of one
 * client posts `session_id` to `session_action`, and signing out of this browser posts to `logout_action`.
 */
export interface AccountPage extends AccountFrame {
  user: PageUser & { email_verified: boolean; organization: string; picture?: string }
  /** The current browser first, each with the sessions that started from it. */
  logins: (Place & {
    id: string
    /** ISO 8601. */
    signed_in_at: string
    /** True for the browser that requests the page. */
    current: boolean
    sessions: SessionRow[]
  })[]
  /** Sessions whose login has ended. */
  sessions: SessionRow[]
  /** Milliseconds; the reference for relative times. */
  now: number
  login_action: string
  session_action: string
  /** Absent when the user is signed in nowhere else. */
  others_action?: string
  /** Present for people with a permission beyond their own profile. */
  console_url?: string
  /** Absent for users who may not change their own profile. */
  change_password_url?: string
  /** Linked external accounts. Linking posts `provider`; unlinking posts `provider` and `subject`. */
  identities?: {
    link_action: string
    unlink_action: string
    /** `may_unlink` is false for the user's only way to sign in. */
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
  /** The next steps of an administrator. */
  next?: {
    /** `lines` are to be pasted: a command or settings. */
    steps: { step: MessageCode<'account.next.', '.title'>; lines: string[] }[]
    issuer: string
    /** False for administrators of a tenant, who may have no access to the machine. */
    is_operator: boolean
  }
  notice?: MessageCode<'account.notice.'>
}

/** A shown way to sign in. */
export type SignInMethod = MessageCode<'account-history.method.'>

/** The sign-ins of the user and the failed attempts, latest first. */
export interface AccountHistoryPage extends AccountFrame {
  entries: (Place & {
    failed: boolean
    /** ISO 8601. */
    at: string
    /** Empty where they are not known. */
    methods: SignInMethod[]
    /** The application; absent for the account itself. */
    client_name?: string
  })[]
  /** Milliseconds; the reference for relative times. */
  now: number
  /** Absent on the last page. */
  next_url?: string
}

/** Data types by page name. */
export interface Pages {
  login: LoginPage
  confirm: ConfirmPage
  'reset-password': ResetPasswordPage
  'sign-up': SignUpPage
  'registration-waiting': Common
  'verify-email': VerifyEmailPage
  'second-factor': SecondFactorPage
  enrol: EnrolPage
  'enrol-totp': EnrolTotpPage
  'enrol-passkey': EnrolPasskeyPage
  'offer-passkey': OfferPasskeyPage
  'email-code': EmailCodePage
  recover: RecoverPage
  'recovery-codes': RecoveryCodesPage
  'select-account': SelectAccountPage
  consent: ConsentPage
  'change-password': ChangePasswordPage
  'set-up': SetUpPage
  invitation: InvitationPage
  'link-account': LinkAccountPage
  'complete-profile': CompleteProfilePage
  attributes: AttributesPage
  terms: TermsPage
  excluded: ExcludedPage
  'form-post': FormPostPage
  'signed-in': SignedInPage
  'logout-confirm': LogoutConfirmPage
  'logged-out': LoggedOutPage
  deleted: DeletedPage
  error: ErrorPage
  account: AccountPage
  'account-security': AccountSecurityPage
  'account-profile': AccountProfilePage
  'account-applications': AccountApplicationsPage
  'account-data': AccountDataPage
  'account-history': AccountHistoryPage
}

/** Picks the fields of a user that pages show. */
export const pageUserOf = ({ first_name, last_name, username, email }: PageUser): PageUser => ({
  first_name,
  last_name,
  username,
  email,
})
