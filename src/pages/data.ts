/**
 * The data of each page, by page name. A sentence that begins with "Posts" lists the fields of the page's
 * form. Callers pass codes instead of sentences, because the texts are in templates/locales. Over 300 lines
 * on purpose: one file shows all data that a template can use.
 */
import type en from '../../templates/locales/en.json'

/** Key of a text in `templates/locales`. */
export type MessageKey = keyof typeof en
/**
 * The part of the message keys between `Prefix` and `Suffix`. `MessageCode<'login.error.'>` is
 * `'invalid_credentials' | …`.
 */
export type MessageCode<Prefix extends string, Suffix extends string = ''> = MessageKey extends infer Key
  ? Key extends `${Prefix}${infer Inner}${Suffix}`
    ? Inner
    : never
  : never

/**
 * Branding of a page. `name` is the organization's display name. A page loads the built-in theme with the
 * name `theme`, or the theme `default` when no built-in theme has this name. `sheets` are the URLs of further
 * stylesheets. A later stylesheet overrides the earlier stylesheets. `logo_dark` replaces `logo` in the dark
 * scheme.
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
  /** Shown with errors, so that users can tell this id to their administrator. */
  request_id?: string
}

/** A user as a page shows it. */
export interface PageUser {
  /** When both names are empty, the page shows the username. */
  first_name: string
  last_name: string
  username: string
  email: string
}

/** A rule of the password policy, shown in a list. */
export interface PasswordRule {
  rule: MessageCode<'rule.'>
  /** Characters for `min_length`, bytes for `too_long`. */
  count?: number
  /** True when the refused password breaks this rule. */
  failed?: boolean
}

/**
 * An error of a form. `seconds` is the time to wait. It is present when the text of `code` states this time.
 */
export interface FormError<Codes> {
  code: Codes
  seconds?: number
}

/** Posts `username` and `password`. Also posts `organization` when the page asks for the organization. */
export interface LoginPage extends Common {
  action: string
  request: string
  csrf_token: string
  username?: string
  /** Organization that the user typed. Absent when the page does not ask for the organization. */
  organization?: string
  error?: FormError<MessageCode<'login.error.'>>
  /** Absent when the user opened /account without an application. */
  client_name?: string
  providers?: { name: string; url: string; kind: string }[]
  /** When absent, the page says that an administrator can reset the password. */
  reset_url?: string
  /** Present when users may sign in with a code by mail. */
  code_url?: string
  /** Present when people may register. */
  sign_up_url?: string
  passkey?: { action: string; options: string; recover_url: string }
}

/**
 * Asks a signed-in user to authenticate again. Posts `password`. `has_password` is false for a user without a
 * password.
 */
export interface ConfirmPage extends Omit<LoginPage, 'username' | 'organization' | 'client_name'>, StepExit {
  user: PageUser
  has_password: boolean
  /** Texts that name the change that is made after the confirmation. */
  change?: readonly MessageKey[]
}

/** Posts `username`. Also posts `organization` when the page asks for the organization. */
export interface ResetPasswordPage extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  username?: string
  /** Organization that the user typed. Absent when the page does not ask for the organization. */
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
  /** True when an administrator approves each registration. */
  waits: boolean
  email?: string
  /** True after the form was posted, whether or not the address has a user. */
  sent?: boolean
  error?: FormError<'email' | 'domain' | 'throttled'>
}

/** The page has exactly one of `form`, `sign_in_url` and `account_url`. The form posts `token`. */
export interface VerifyEmailPage extends Common {
  email: string
  /** True when the account gets a new address. The link otherwise verifies the address of the account. */
  is_change?: boolean
  /** `username` names the account that gets a new address. */
  form?: { action: string; token: string; csrf_token: string; username?: string }
  /**
   * Present when the user has to sign in first. In this case the page shows this link in place of the form.
   */
  sign_in_url?: string
  /** Link to the account. Present when the address is verified. */
  account_url?: string
  error?: 'taken' | 'domain'
}

/**
 * Ways to leave a step of a login. `cancel_url` is the page to which the user can go back. `other` is a form
 * that posts `fields` to sign in as another user.
 */
export interface StepExit {
  cancel_url?: string
  other?: { action: string; fields: Record<string, string> }
}

/**
 * Posts the field of `method`: `code`, `recovery_code` or `credential`. Also posts `remember` when the user
 * has ticked that checkbox.
 */
export interface SecondFactorPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  user: PageUser
  method: MessageCode<'second-factor.lead.'>
  others: { method: MessageCode<'second-factor.use.'>; url: string }[]
  /** Days for which the browser needs no second factor when `remember` is ticked. */
  remember_days?: number | undefined
  /** True when `remember` was ticked in a refused form. */
  remembers?: boolean
  /** WebAuthn request options as JSON. */
  options?: string
  /**
   * Link to the page on which the user replaces a lost factor. Present when the step accepts no recovery
   * code.
   */
  replace_url?: string
  error?: FormError<MessageCode<'second-factor.error.'>>
}

/** Lets the user choose a factor to add. Each choice is a link. The only form is that of {@link StepExit}. */
export interface EnrolPage extends Common, StepExit {
  /** Path of this page. The query of the page is `request`. */
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
  /** The kind of factor to add: parameter `kind` of the page. Parts of pages have a `kind` of their own. */
  adding?: MessageCode<'enrol.kind.'>
  error?: FormError<MessageCode<'enrol.error.'>>
}

/**
 * Posts `code`. `path` is an SVG path of unit squares. It draws the QR code in a square with the side `size`.
 */
export interface EnrolTotpPage extends EnrolForm {
  qr: { size: number; path: string }
  key: string
  uri: string
}

/** Posts `credential`. */
export interface EnrolPasskeyPage extends EnrolForm {
  options: string
}

/**
 * Offers a passkey after a login with a password. A second form, which declines the offer, posts to
 * `later_action`.
 */
export interface OfferPasskeyPage extends EnrolPasskeyPage {
  later_action: string
}

/**
 * Posts `username` to request a code by mail. After a code was requested, the page has `again_url` and posts
 * `code`.
 */
export interface EmailCodePage extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  username?: string
  /**
   * Present when a code was requested. `given` is the code from the link in the mail. The page fills the code
   * in, and the user submits the form.
   */
  again_url?: string
  given?: string
  error?: FormError<MessageCode<'email-code.error.'> | 'throttled' | 'busy'>
}

/** Lets a user without a password sign in with a recovery code. Posts `username` and `recovery_code`. */
export interface RecoverPage extends Common {
  action: string
  request: string
  csrf_token: string
  login_url: string
  username?: string
  error?: FormError<MessageCode<'recover.error.'> | 'throttled' | 'busy'>
}

/**
 * Shown once, after the codes were made. The form is a GET of `action` with `request`. The user must tick
 * that the codes are saved.
 */
export interface RecoveryCodesPage extends Common {
  user: PageUser
  codes: string[]
  /** URL of the server, written into the file of saved codes. */
  address: string
  /** ISO 8601. */
  created_at: string
  action: string
  request?: string
  /**
   * Slug of the organization to which the page leads back. Present only when the page belongs to the account
   * pages.
   */
  organization?: string | undefined
}

/**
 * Posts `login=<id>` to choose a login, `login=other` to sign in as another user, or `forget=<id>` to end a
 * login.
 */
export interface SelectAccountPage extends Common {
  action: string
  request: string
  csrf_token: string
  client_name?: string
  accounts: (PageUser & { login: string; organization?: string })[]
}

/** Posts `decision=approve` or `decision=deny`, and `fields`. */
export interface ConsentPage extends Common, StepExit {
  action: string
  /**
   * `unverified` is set for a dynamic client. The value `loopback` means that any program on the device can
   * pose as the client. `host` is the host of the client's metadata document.
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
  /**
   * An entry for each requested API (`name` is the API's identifier) and for each requested scope.
   * `description` replaces the built-in text.
   */
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
 * Posts `password` and `password_repeat`. Also posts `current_password` when `ask_current` is true, and
 * `request` or `token` when the page has this field.
 */
export interface ChangePasswordPage extends Common, StepExit {
  action: string
  csrf_token: string
  request?: string
  /** Token of the single-use link that led here. */
  token?: string
  /**
   * WebAuthn creation options as JSON. Present when the user may add a passkey in place of a password. In
   * this case the form posts the new passkey as `credential`.
   */
  passkey_options?: string
  /** False when the organization requires passkeys. In this case the page asks for no password. */
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
 * Asks for confirmation before an account at a provider is linked to the existing user with the same address.
 * Posts the `password` of the existing user.
 */
export interface LinkAccountPage extends ProviderPage {
  email: string
  /**
   * URL of the login page, which a user without a password needs. The page always has this link, so that the
   * link does not reveal whether the user has a password.
   */
  login_url: string
  error?: FormError<MessageCode<'link-account.error.'>>
}

type ProfileField = 'first_name' | 'last_name' | 'email'

/**
 * An attribute of the user. The form posts the value under the name `id`. A checkbox that is not ticked posts
 * nothing, so the form also posts the ids of all editable attributes as `attributes`.
 */
export interface AttributeField {
  id: string
  label: string
  type: 'text' | 'checkbox'
  value: string
  required: boolean
  /** False when the page only shows the value. */
  editable: boolean
  error?: MessageCode<'set-up.error.'>
}

/** Tells the user that the client does not admit this user. */
export interface ExcludedPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  client: { name: string }
  user: PageUser
}

/** Terms of use: a plain text, the URL of a page, or both. */
export interface Terms {
  version: string
  text: string
  url: string
}

/** Terms of the organization that the user has to accept. Posts `version` and the checkbox `accept`. */
export interface TermsPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  user: PageUser
  terms: Terms
  error?: { code: 'missing' }
}

/** Asks for required attributes that the user lacks. Posts the fields of {@link AttributeField}. */
export interface AttributesPage extends Common, StepExit {
  action: string
  request: string
  csrf_token: string
  user: PageUser
  attributes: AttributeField[]
}

/**
 * Asks for the profile fields that the provider's claims lack, before a user is created just in time. Posts
 * the `missing` fields.
 */
export interface CompleteProfilePage extends ProviderPage {
  missing: readonly ProfileField[]
  /** The address of the invitation, otherwise the address that the provider sent. */
  email?: string
  values?: Partial<Record<ProfileField, string>>
  errors?: Partial<Record<ProfileField, MessageCode<'set-up.error.'>>>
}

type NewUserField = 'username' | 'email' | 'first_name' | 'last_name'

/** The fields of a form for a new user. */
export type NewUserFields = Record<NewUserField, string>

/** Errors of the fields of a new user. */
export type NewUserErrors = Partial<Record<NewUserField, MessageCode<'set-up.error.'>>>

/** Posts `token`, `username`, `email`, `first_name`, `last_name`, `password` and `password_repeat`. */
export interface SetUpPage extends Common {
  action: string
  csrf_token: string
  token: string
  values?: Partial<Record<NewUserField, string>>
  /** Errors by field. `password: 'policy'` means that `rules` marks the rules that the password breaks. */
  errors?: NewUserErrors & Partial<Record<'password' | 'password_repeat', MessageCode<'set-up.error.'>>>
  rules: PasswordRule[]
}

/**
 * An invitation or registration, in two forms. The first posts `token`, `username`, `email` and the names.
 * The second repeats these fields and adds `password` and `password_repeat`, or the `credential` of a new
 * passkey. Posting `edit` returns to the first form. A button of `providers` posts `token` and `provider`.
 */
export interface InvitationPage extends Common {
  action: string
  csrf_token: string
  token: string
  values: Partial<Record<NewUserField, string>>
  errors?: SetUpPage['errors']
  /** False for an existing user who has no credential yet. */
  is_new: boolean
  /** The invited address, which cannot be changed. */
  email?: string
  /** True for a registration, false for an invitation. */
  is_registration: boolean
  /**
   * Handle of the authorization request that continues after the form. Present only if that request began in
   * this browser.
   */
  request?: string
  /** Username of a user with a login in this browser. */
  signed_in_as?: string
  /** Upstream providers with which the person may sign in instead. */
  providers?: { alias: string; name: string; kind: string }[]
  /**
   * Present in the second form. `rules` are the password rules. `options` are WebAuthn creation options as
   * JSON, present when passkeys are allowed.
   */
  sign_in?: {
    options?: string
    takes_password: boolean
    rules: PasswordRule[]
    error?: 'passkey' | 'terms'
    /** When present, the second form also posts `accept` and `version`. */
    terms?: Terms
  }
}

/** Shown to a signed-in user when there is no application to return to. */
export interface SignedInPage extends Common {
  user: PageUser
  account_url: string
}

/**
 * Posts `fields` to the client's redirect URI, which is `action`. A script submits the form. Without
 * JavaScript the user presses a button.
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
  /** Link back to the application. `login_url` begins a new login. */
  return_url?: string
  login_url?: string
}

/** Shown after users have deleted their account. */
export interface DeletedPage extends Common {
  login_url: string
}

/** Shown for failures, and for refusals that cannot be sent to a redirect URI. */
export interface ErrorPage extends Common {
  code: MessageCode<'error.', '.title'>
  seconds?: number
  /** URL at which the user can start again. The empty string is the URL of the page itself. */
  retry_url?: string
  /** True when the error leaves no login to return to, so `retry_url` leads to the account. */
  is_fallback?: boolean
  /** Details of a refused authorization request, in development mode only. */
  request?: { reason: string; redirect_uri: string; registered: readonly string[] } | undefined
}

/** Data of each account page. */
export interface AccountFrame extends Common {
  /** The user of the page. A browser may have logins of several users. */
  user: PageUser
  csrf_token: string
  logout_action: string
  /**
   * Query that keeps the links of the page within one organization. Empty when the URL names no organization.
   */
  organization_query: string
  /** True when the user may change the profile. */
  may_change: boolean
}

/**
 * Each form posts `csrf_token`. The forms of `remove_action` and `rename_action` also post `factor_id`. The
 * form of `rename_action` also posts `name`.
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
    /** Why the user may not remove the factor. */
    kept?: MessageCode<'account-security.kept.'>
  }[]
  /** The number of unused recovery codes. */
  codes_left: number
  now: number
  /** Absent when the user has the maximum number of factors. */
  add_url?: string
  /** Browsers in which the user needs no second factor. The form of `forget_action` posts `browser_id`. */
  remembered: { id: string; user_agent: string; location: string; ip_address: string; until: string }[]
  forget_action: string
  remove_action: string
  rename_action: string
  codes_action: string
  /**
   * False for a user without a password. In this case `change_password_url` leads to a form that sets the
   * first password.
   */
  has_password: boolean
  change_password_url: string
  /**
   * State of codes by mail for this user. Absent when the organization does not offer codes by mail.
   * `only_way_in` means that the codes are on and cannot be switched off. The form posts `email_code`.
   */
  email_code?: MessageCode<'account-security.email_code.'>
  email_code_action: string
  notice?: MessageCode<'account-security.notice.'>
}

/** Posts `first_name`, `last_name` and `email`. */
export interface AccountProfilePage extends AccountFrame {
  action: string
  username: string
  values: Record<'first_name' | 'last_name' | 'email', string>
  errors?: Partial<Record<'first_name' | 'last_name' | 'email', MessageCode<'set-up.error.'>>>
  attributes?: AttributeField[]
  /** Seconds to wait, for the error `throttled`. */
  seconds?: number
  /**
   * The e-mail address of the user when the server sends no mail. In this case the user cannot change the
   * address, because a new address cannot be verified.
   */
  fixed_email?: string
  /**
   * Action of the form that requests the verification mail. Present when the server sends mail and either the
   * current address is unverified or a new address waits for verification.
   */
  verify_action?: string
  /** New address that waits for verification. Posting `discard` cancels the change. */
  pending_email?: string
  /**
   * Path of the picture. Its buttons send the form of the page to `picture_action` as multipart/form-data,
   * with a file in `picture`, or `remove`. The answer shows the other fields as they were typed. The Enter
   * key presses the first button of a form, so the form begins with an unseen button that saves.
   */
  picture?: string
  picture_action: string
  picture_error?: MessageCode<'account-profile.picture.error.'>
  notice?: MessageCode<'account-profile.notice.'>
}

/** Posts `client_id`. */
export interface AccountApplicationsPage extends AccountFrame {
  /**
   * `created_at` is the time of the consent (ISO 8601). It is absent for a client that the user uses without
   * having given consent.
   */
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

/** The form of `delete_action` posts `username`. */
export interface AccountDataPage extends AccountFrame {
  username: string
  download_action: string
  delete_action: string
  /** Absent when the organization does not allow users to delete their accounts. */
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
 * Logins and sessions of the user. The form of `login_action` posts `login_id` and signs a browser out. The
 * form of `session_action` posts `session_id` and ends one session. The form of `logout_action` signs this
 * browser out.
 */
export interface AccountPage extends AccountFrame {
  user: PageUser & { email_verified: boolean; organization: string; picture?: string }
  /** Logins by browser, the current browser first. Each login has the sessions that began in its browser. */
  logins: (Place & {
    id: string
    /** ISO 8601. */
    signed_in_at: string
    /** True for the browser that requested the page. */
    current: boolean
    sessions: SessionRow[]
  })[]
  /** Sessions whose login has ended. */
  sessions: SessionRow[]
  /** Time of the page in milliseconds since the epoch. The page shows other times relative to it. */
  now: number
  login_action: string
  session_action: string
  /** Absent when the user has no login in another browser, and no session whose login has ended. */
  others_action?: string
  /** Present while the console is on, for a user with permissions beyond their own profile. */
  console_url?: string
  /** Absent for a user who has no password, or may not change the profile. */
  change_password_url?: string
  /**
   * Linked accounts at upstream providers. The form of `link_action` posts `provider`. The form of
   * `unlink_action` posts `provider` and `subject`.
   */
  identities?: {
    link_action: string
    unlink_action: string
    /** `may_unlink` is false when the user has no other way to sign in. */
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
  /** Next steps for an administrator after the set-up. */
  next?: {
    /** `lines` contain a command or settings that the user can paste. */
    steps: { step: MessageCode<'account.next.', '.title'>; lines: string[] }[]
    issuer: string
    /**
     * True for an administrator of the default organization. Other administrators may have no access to the
     * machine of the server, on which the commands run.
     */
    is_operator: boolean
  }
  notice?: MessageCode<'account.notice.'>
}

/** A way to sign in, as the history page names it. */
export type SignInMethod = MessageCode<'account-history.method.'>

/** Logins and failed attempts of the user, latest first. */
export interface AccountHistoryPage extends AccountFrame {
  entries: (Place & {
    failed: boolean
    /** True when the user, or someone with the user's password, did not prove the second factor. */
    is_unfinished?: boolean
    /** ISO 8601. */
    at: string
    /** Empty when the methods are unknown. */
    methods: SignInMethod[]
    /** Absent when the user signed in to the account pages. */
    client_name?: string
  })[]
  /** Time of the page in milliseconds since the epoch. The page shows other times relative to it. */
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
