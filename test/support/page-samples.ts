/**
 * Sample data of every page and mail, for screenshots and tests. This file is long on purpose, because it is
 * one list.
 */
import { timeOf } from '#src/links/mail-texts.ts'
import { isNotice, type MailContent } from '#src/mail/render.ts'
import type { Pages } from '#src/pages/data.ts'
import { setUpOf } from '#src/sign-in/totp.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'

export type Sample = {
  [Page in keyof Pages]: { page: Page; state: string; data: Pages[Page]; status?: number }
}[keyof Pages]

const brand = { name: 'Northwind Labs' }
/** Logos that the preview serves, by path. */
export const logos = Object.fromEntries(
  Object.entries({ light: '#0a7d6c', dark: '#5fd6c2' }).map(([scheme, fill]) => [
    `/assets/organizations/org_sample/${scheme}.svg`,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 36"><path fill="${fill}" d="M0 18a18 18 0 0 1 36 0zM54 18a18 18 0 0 0 36 0zM27 36a18 18 0 0 1 36 0z"/></svg>`,
  ]),
)
const [logo = '', logo_dark = ''] = Object.keys(logos)
const request_id = 'req_0199f2c4-7d1e-7b60-9a53-4f1c2b8e6d70'
const form = { csrf_token: 'csrf-3Vb', request: 'request-8Qx' }
const ada = { first_name: 'Ada', last_name: 'Lovelace', username: 'ada', email: 'ada@northwind.example' }
const grace = {
  first_name: 'Grace',
  last_name: 'Hopper',
  username: 'grace.hopper',
  email: 'grace.hopper@navy.example',
}

const login: Pages['login'] = {
  brand,
  ...form,
  action: '/oauth/login',
  client_name: 'Orbit Notes',
  reset_url: '/reset',
}
const providers = [
  { name: 'Google', url: '/oauth/social/google', kind: 'google' },
  { name: 'Microsoft', url: '/oauth/social/microsoft', kind: 'microsoft' },
  ...['Apple', 'GitHub', 'GitLab', 'Discord', 'Facebook', 'LinkedIn', 'Slack', 'X'].map(name => ({
    name,
    url: `/oauth/social/${name.toLowerCase()}`,
    kind: name.toLowerCase(),
  })),
  { name: 'Northwind SSO', url: '/saml/northwind/login', kind: 'saml' },
  { name: 'Fabrikam', url: '/oauth/social/fabrikam', kind: 'oidc' },
]

const consent: Pages['consent'] = {
  brand,
  action: '/oauth/consent',
  client: { name: 'Orbit Notes', description: 'Notes that stay in sync on all your devices.' },
  user: ada,
  scopes: ['openid', 'profile', 'email', 'offline_access'].map(name => ({ name })),
  fields: {
    client_id: 'orbit-notes',
    scope: 'openid profile email offline_access',
    state: 'af0ifjsldkj',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    redirect_uri: 'https://notes.orbit.example/callback',
    ...form,
  },
}

const other = { action: '/oauth/other-account', fields: form }
const rules: Pages['change-password']['rules'] = [
  { rule: 'min_length', count: 12 },
  { rule: 'require_uppercase' },
  { rule: 'require_lowercase' },
  { rule: 'require_digit' },
  { rule: 'require_special' },
  { rule: 'not_common' },
]
const broken = rules.map(rule => ({ ...rule, failed: ['min_length', 'require_digit'].includes(rule.rule) }))
const change: Pages['change-password'] = {
  brand,
  ...form,
  action: '/oauth/change-password',
  reason: 'temporary',
  user: ada,
  ask_current: false,
  rules,
}

const setUp: Pages['set-up'] = {
  brand: { name: 'Gatehouse' },
  csrf_token: form.csrf_token,
  action: '/account/set-up',
  token: 'set-up-token',
  rules,
}

const openInvitation: Pages['invitation'] = {
  brand,
  csrf_token: form.csrf_token,
  action: '/account/invitation',
  token: 'invitation-token',
  is_new: true,
  is_registration: false,
  values: {},
}
const invitation = {
  ...openInvitation,
  email: ada.email,
  values: { username: ada.username, email: ada.email },
}
const invited = { ...invitation, values: ada }
const terms = {
  version: '2026-01',
  text: 'You keep your account to yourself.\nYou treat others as you want to be treated.',
  url: 'https://northwind.example/terms',
}
const accepting: Pages['terms'] = {
  brand,
  ...form,
  action: '/oauth/terms',
  user: ada,
  terms,
  other,
}
const invitedBy = [
  { alias: 'google', name: 'Google', kind: 'google' },
  { alias: 'northwind', name: 'Northwind SSO', kind: 'saml' },
]

const fromProvider = {
  brand,
  csrf_token: form.csrf_token,
  action: '/oauth/link-account',
  request: form.request,
  provider: { name: 'GitHub', kind: 'github' },
  client_name: 'Orbit Notes',
  other,
}
const linkAccount: Pages['link-account'] = {
  ...fromProvider,
  email: ada.email,
  login_url: '/oauth/login?request=handle',
}
const names = ['first_name', 'last_name'] as const

const challenge = { challenge: 'c2lnbiB0aGlz', rpId: 'id.northwind.example', userVerification: 'required' }
const creation = JSON.stringify({ ...challenge, rp: {}, user: { id: '' } })
const confirm = { brand, ...form, action: '/oauth/login', user: ada }
const enrolForm = { brand, ...form, action: '/oauth/enrol', user: ada, cancel_url: '/oauth/enrol', other }
const set_up = setUpOf('JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', brand.name, ada.username)
const emailCode: Pages['email-code'] = {
  brand,
  ...form,
  action: '/oauth/email-code',
  login_url: '/oauth/login',
}
const askedCode = { ...emailCode, username: 'ada', again_url: '/again' }
const recover: Pages['recover'] = { brand, ...form, action: '/oauth/recover', login_url: '/oauth/login' }
const secondFactor: Pages['second-factor'] = {
  brand,
  ...form,
  action: '/oauth/second-factor',
  user: ada,
  method: 'totp',
  other,
  others: [
    { method: 'passkey', url: '/oauth/second-factor?request=request-8Qx&method=passkey' },
    { method: 'recovery', url: '/oauth/second-factor?request=request-8Qx&method=recovery' },
  ],
}
const resetPassword: Pages['reset-password'] = {
  brand,
  ...form,
  action: '/oauth/reset-password',
  login_url: '/oauth/login?request=request-8Qx',
}
const signUp: Pages['sign-up'] = {
  brand,
  ...form,
  action: '/oauth/sign-up',
  login_url: '/oauth/login?request=request-8Qx',
  waits: false,
}
const recovery_codes = [
  'k3vq-8zt2-m0ax',
  '0f7c-w2qn-5rdh',
  'yb6e-1kxs-93pa',
  'm4tz-hj80-vc2g',
  'd9r1-6nwq-exk5',
]

const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0'
const mac = {
  user_agent: `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${chrome} Safari/537.36`,
  location: 'Lisbon, Portugal',
  ip_address: '198.51.100.7',
}
const phone = {
  user_agent:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Mobile/15E148 Safari/604.1',
  location: '',
  ip_address: '2001:db8::7334',
}
const account: Pages['account'] = {
  brand,
  csrf_token: form.csrf_token,
  user: { ...ada, email_verified: true, organization: 'Northwind Labs' },
  now: Date.parse('2026-11-20T12:00:00Z'),
  login_action: '/account/logins',
  session_action: '/account/sessions',
  others_action: '/account/logins/others',
  logout_action: '/account/logout',
  organization_query: '',
  may_change: true,
  change_password_url: '/account/password',
  logins: [
    {
      ...mac,
      id: 'login_1',
      signed_in_at: '2026-11-20T11:40:00Z',
      current: true,
      sessions: [
        { ...mac, id: 'sess_1', client_name: 'Orbit Notes', last_active_at: '2026-11-20T11:59:40Z' },
        { ...mac, id: 'sess_5', client_name: 'Payroll', last_active_at: '2026-11-20T11:45:00Z' },
      ],
    },
    {
      ...phone,
      id: 'login_2',
      signed_in_at: '2026-11-20T08:30:00Z',
      current: false,
      sessions: [
        { ...phone, id: 'sess_2', client_name: 'Fleet Console', last_active_at: '2026-11-20T08:31:00Z' },
      ],
    },
    {
      user_agent: '',
      location: '',
      ip_address: '192.0.2.4',
      id: 'login_3',
      signed_in_at: '2026-11-19T14:00:00Z',
      current: false,
      sessions: [],
    },
  ],
  sessions: [
    {
      id: 'sess_3',
      client_name: 'Payroll',
      user_agent: `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36 Edg/156.0.0.0`,
      location: 'Porto, Portugal',
      ip_address: '203.0.113.20',
      last_active_at: '2026-11-11T12:00:00Z',
    },
    {
      id: 'sess_4',
      client_name: 'Nightly report',
      user_agent: '',
      location: '',
      ip_address: '192.0.2.4',
      last_active_at: '2026-08-20T12:00:00Z',
    },
  ],
}

const next = { issuer: 'https://id.northwind.example', is_operator: true }
const nextSteps = (option: string): NonNullable<Pages['account']['next']>['steps'] => [
  { step: 'client', lines: [`gatehouse client create NAME --kind web --redirect URL${option}`] },
  { step: 'user', lines: [`gatehouse user create NAME --email ADDRESS${option}`] },
  { step: 'mail', lines: ['GATEHOUSE_SMTP_URL=smtps://USER:PASSWORD@HOST', 'GATEHOUSE_MAIL_FROM=ADDRESS'] },
]
const soleBrowser = { logins: account.logins.slice(0, 1), sessions: [] }

const frame = {
  brand,
  user: ada,
  csrf_token: form.csrf_token,
  logout_action: '/account/logout',
  organization_query: '',
  may_change: true,
  now: account.now,
}
const security: Pages['account-security'] = {
  ...frame,
  factors: [
    {
      id: 'fac_1',
      type: 'passkey',
      name: 'MacBook of Ada',
      created_at: '2026-03-02T12:00:00Z',
      last_active_at: '2026-11-20T11:00:00Z',
    },
    { id: 'fac_2', type: 'totp', name: 'Authenticator app', created_at: '2026-11-18T12:00:00Z' },
  ],
  codes_left: 8,
  add_url: '/account/security/add',
  remembered: [
    {
      id: 'brw_1',
      user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      location: 'Lisbon, Portugal',
      ip_address: '203.0.113.7',
      until: '2026-12-18T12:00:00Z',
    },
  ],
  forget_action: '/account/security/forget',
  remove_action: '/account/security/remove',
  rename_action: '/account/security/rename',
  codes_action: '/account/security/codes',
  has_password: true,
  email_code: 'on',
  email_code_action: '/account/security/email-code',
  change_password_url: '/account/change-password',
}

const { add_url: _, ...full } = security

const profile: Pages['account-profile'] = {
  picture_action: '/account/picture',
  ...frame,
  action: '/account/profile',
  username: ada.username,
  values: { first_name: 'Ada', last_name: 'Lovelace', email: ada.email },
}
const attributes: NonNullable<Pages['account-profile']['attributes']> = [
  {
    id: 'attribute.phone',
    label: 'Phone',
    type: 'text',
    value: '+44 20 7946 0958',
    required: true,
    editable: true,
  },
  { id: 'attribute.desk', label: 'Desk', type: 'text', value: '4.12', required: false, editable: false },
  {
    id: 'attribute.parking',
    label: 'Parking space',
    type: 'checkbox',
    value: 'true',
    required: false,
    editable: true,
  },
]
const missing: Pages['attributes'] = {
  brand,
  ...form,
  action: '/oauth/attributes',
  user: ada,
  attributes: attributes.filter(({ editable }) => editable).map(field => ({ ...field, value: '' })),
  other,
}
const startable: Pages['account-applications']['startable'] = [
  { client_id: 'orbit-notes', client_name: 'Orbit Notes', logo, url: 'https://notes.orbit.example/' },
  { client_id: 'fleet', client_name: 'Fleet Console', url: 'https://fleet.example/' },
  { client_id: 'payroll', client_name: 'Payroll', url: 'https://payroll.example/' },
]
const applications: Pages['account-applications'] = {
  ...frame,
  startable: [],
  applications: [
    {
      client_id: 'orbit-notes',
      client_name: 'Orbit Notes',
      scopes: ['openid', 'profile', 'email', 'offline_access'],
      created_at: '2026-06-02T12:00:00Z',
    },
    {
      client_id: 'fleet',
      client_name: 'Fleet Console',
      scopes: ['openid', 'users:read', 'fleet.dispatch'],
      created_at: '2026-11-19T12:00:00Z',
    },
    { client_id: 'payroll', client_name: 'Payroll', scopes: [] },
  ],
  disconnect_action: '/account/applications/disconnect',
}
const data: Pages['account-data'] = {
  ...frame,
  brand: { name: 'Acme' },
  username: ada.username,
  download_action: '/account/data/download',
  delete_action: '/account/data/delete',
}

const history: Pages['account-history'] = {
  ...frame,
  brand,
  now: account.now,
  entries: [
    {
      ...mac,
      failed: false,
      at: '2026-11-20T11:40:00Z',
      methods: ['password', 'code'],
      client_name: 'Orbit Notes',
    },
    { ...phone, failed: false, at: '2026-11-20T08:30:00Z', methods: ['passkey'] },
    {
      user_agent: '',
      location: '',
      ip_address: '192.0.2.4',
      failed: true,
      at: '2026-11-19T14:00:00Z',
      methods: [],
    },
    { ...phone, failed: false, is_unfinished: true, at: '2026-11-19T13:59:00Z', methods: ['password'] },
  ],
  next_url: '/account/history?cursor=c',
}

/** All pages, in each state that looks different. */
export const samples: Sample[] = [
  { page: 'login', state: 'empty', data: login },
  { page: 'login', state: 'no-mail', data: { brand, ...form, action: '/oauth/login' } },
  {
    page: 'login',
    state: 'registration',
    data: { ...login, sign_up_url: '/oauth/sign-up?request=request-8Qx' },
  },
  { page: 'login', state: 'two-providers', data: { ...login, providers: providers.slice(0, 2) } },
  { page: 'login', state: 'providers', data: { ...login, providers, username: 'ada@northwind.example' } },
  { page: 'login', state: 'organization', data: { ...login, username: 'ada', organization: '' } },
  {
    page: 'login',
    state: 'wrong-organization',
    status: 401,
    data: {
      ...login,
      username: 'ada',
      organization: 'northwind',
      error: { code: 'invalid_credentials' },
      request_id,
    },
  },
  { page: 'login', state: 'logo', data: { ...login, brand: { ...brand, logo, logo_dark } } },
  {
    page: 'login',
    state: 'links',
    data: {
      ...login,
      brand: {
        ...brand,
        links: {
          terms_url: 'https://northwind.example/terms',
          privacy_url: 'https://northwind.example/privacy',
          support_url: 'mailto:help@northwind.example',
        },
      },
    },
  },
  {
    page: 'login',
    state: 'refused',
    status: 401,
    data: { ...login, username: 'ada', error: { code: 'invalid_credentials' }, request_id },
  },
  {
    page: 'login',
    state: 'throttled',
    status: 429,
    data: { ...login, username: 'ada', error: { code: 'throttled', seconds: 16 }, request_id },
  },
  {
    page: 'login',
    state: 'passkey',
    data: {
      ...login,
      passkey: { action: '/oauth/passkey', recover_url: '/recover', options: JSON.stringify(challenge) },
    },
  },
  { page: 'reset-password', state: 'usual', data: resetPassword },
  { page: 'reset-password', state: 'organization', data: { ...resetPassword, organization: '' } },
  { page: 'reset-password', state: 'sent', data: { ...resetPassword, sent: true } },
  {
    page: 'reset-password',
    state: 'refused',
    status: 429,
    data: { ...resetPassword, username: 'ada', error: { code: 'throttled', seconds: 600 }, request_id },
  },
  { page: 'sign-up', state: 'usual', data: signUp },
  { page: 'sign-up', state: 'approval', data: { ...signUp, waits: true } },
  { page: 'sign-up', state: 'sent', data: { ...signUp, sent: true } },
  {
    page: 'sign-up',
    state: 'refused',
    status: 400,
    data: { ...signUp, email: 'ada@home.example', error: { code: 'domain' } },
  },
  { page: 'registration-waiting', state: 'done', data: { brand } },
  {
    page: 'verify-email',
    state: 'usual',
    data: { brand, email: ada.email, form: { action: '/account/verify-email', token: 't', csrf_token: 'c' } },
  },
  {
    page: 'verify-email',
    state: 'change',
    status: 400,
    data: {
      brand,
      email: 'ada@new.example',
      is_change: true,
      form: { action: '/account/verify-email', token: 't', csrf_token: 'c', username: ada.username },
      error: 'taken',
      request_id,
    },
  },
  {
    page: 'verify-email',
    state: 'sign_in',
    data: { brand, email: 'ada@new.example', is_change: true, sign_in_url: '/account/verify-email/sign-in' },
  },
  { page: 'verify-email', state: 'done', data: { brand, email: ada.email, account_url: '/account' } },
  { page: 'second-factor', state: 'totp', data: secondFactor },
  { page: 'second-factor', state: 'remember', data: { ...secondFactor, remember_days: 30 } },
  {
    page: 'second-factor',
    state: 'refused',
    status: 401,
    data: { ...secondFactor, error: { code: 'totp' }, request_id },
  },
  {
    page: 'second-factor',
    state: 'passkey',
    data: {
      ...secondFactor,
      method: 'passkey',
      options: JSON.stringify(challenge),
      others: [{ method: 'recovery', url: '/oauth/second-factor?request=request-8Qx&method=recovery' }],
    },
  },
  {
    page: 'second-factor',
    state: 'passkey-only',
    data: {
      ...secondFactor,
      method: 'passkey',
      options: JSON.stringify(challenge),
      others: [],
      replace_url: '/account/security?organization=northwind',
    },
  },
  {
    page: 'second-factor',
    state: 'recovery',
    status: 429,
    data: { ...secondFactor, method: 'recovery', others: [], error: { code: 'throttled', seconds: 4 } },
  },
  {
    page: 'enrol',
    state: 'required',
    data: {
      brand,
      action: '/oauth/enrol',
      request: 'request-8Qx',
      user: ada,
      reason: 'required',
      choices: [
        { kind: 'passkey', url: '/oauth/enrol?request=request-8Qx&kind=passkey' },
        { kind: 'totp', url: '/oauth/enrol?request=request-8Qx&kind=totp' },
      ],
      other,
    },
  },
  { page: 'enrol-totp', state: 'usual', data: { ...enrolForm, ...set_up } },
  {
    page: 'enrol-totp',
    state: 'refused',
    status: 400,
    data: { ...enrolForm, ...set_up, error: { code: 'code' }, request_id },
  },
  {
    page: 'enrol-passkey',
    state: 'usual',
    data: { ...enrolForm, options: JSON.stringify({ ...challenge, rp: {}, user: {} }) },
  },
  {
    page: 'enrol-passkey',
    state: 'refused',
    status: 400,
    data: { ...enrolForm, options: '{}', error: { code: 'passkey' }, request_id },
  },
  {
    page: 'offer-passkey',
    state: 'usual',
    data: { ...enrolForm, later_action: '/oauth/offer-passkey', options: creation },
  },
  {
    page: 'login',
    state: 'email-code',
    data: {
      ...login,
      code_url: '/oauth/email-code?request=request-8Qx',
      passkey: { action: '/oauth/passkey', recover_url: '/recover', options: JSON.stringify(challenge) },
    },
  },
  { page: 'email-code', state: 'usual', data: emailCode },
  {
    page: 'email-code',
    state: 'throttled',
    status: 429,
    data: { ...emailCode, username: 'ada', error: { code: 'throttled', seconds: 600 } },
  },
  { page: 'email-code', state: 'asked', data: askedCode },
  { page: 'email-code', state: 'link', data: { ...askedCode, given: '483910' } },
  { page: 'email-code', state: 'refused', status: 401, data: { ...askedCode, error: { code: 'wrong' } } },
  { page: 'recover', state: 'usual', data: recover },
  {
    page: 'recover',
    state: 'refused',
    status: 401,
    data: { ...recover, username: 'ada', error: { code: 'invalid_credentials' } },
  },
  {
    page: 'recover',
    state: 'throttled',
    status: 429,
    data: { ...recover, username: 'ada', error: { code: 'throttled', seconds: 60 } },
  },
  {
    page: 'recovery-codes',
    state: 'usual',
    data: {
      brand,
      user: ada,
      codes: [...recovery_codes, ...recovery_codes],
      address: 'https://id.northwind.example',
      created_at: '2026-11-20T12:00:00Z',
      action: '/oauth/enrol',
      request: 'request-8Qx',
    },
  },
  {
    page: 'select-account',
    state: 'three',
    data: {
      brand,
      ...form,
      action: '/oauth/select-account',
      client_name: 'Orbit Notes',
      accounts: [
        { ...ada, login: 'login-1', organization: 'Northwind Labs' },
        { ...grace, login: 'login-2', organization: 'Northwind Labs' },
        {
          first_name: '',
          last_name: '',
          username: 'ops-oncall',
          email: 'ops@northwind.example',
          login: 'login-3',
        },
      ],
    },
  },
  { page: 'consent', state: 'usual', data: consent },
  {
    page: 'consent',
    state: 'presented',
    data: {
      ...consent,
      client: {
        ...consent.client,
        logo,
        links: {
          client_uri: 'https://notes.orbit.example/',
          policy_uri: 'https://notes.orbit.example/privacy',
          tos_uri: 'https://notes.orbit.example/terms',
        },
      },
    },
  },
  {
    page: 'consent',
    state: 'powerful',
    data: {
      ...consent,
      client: { name: 'Fleet Console' },
      other,
      scopes: [
        ...[
          'openid',
          'users:read',
          'users:update',
          'roles:read',
          'clients:read',
          'events:read',
          'settings:update',
        ].map(name => ({ name })),
        { name: 'fleet.dispatch', description: 'Send vehicles and change their routes' },
        { name: 'https://fleet.example/telemetry' },
      ],
    },
  },
  {
    page: 'consent',
    state: 'document',
    data: { ...consent, client: { name: 'Claude Code', unverified: 'loopback', host: 'claude.ai' } },
  },
  {
    page: 'consent',
    state: 'long',
    data: {
      ...consent,
      brand: { name: 'Rindfleischetikettierungsüberwachungsbehörde Mecklenburg-Vorpommern' },
      other,
      client: {
        name: `Travel and expense reports ${'of the office '.repeat(4)}`,
        description: 'x'.repeat(128),
      },
      user: {
        first_name: '',
        last_name: '',
        username: 'u'.repeat(128),
        email: `${'u'.repeat(64)}@${'d'.repeat(60)}.example`,
      },
      scopes: [{ name: 'openid' }, { name: `urn:${'s'.repeat(120)}` }],
      fields: { ...consent.fields, redirect_uri: 'com.northwind.expenses:/callback' },
    },
  },
  { page: 'change-password', state: 'temporary', data: { ...change, other } },
  {
    page: 'change-password',
    state: 'passkey',
    data: { ...change, token: 'token', reason: 'link', passkey_options: creation },
  },
  {
    page: 'change-password',
    state: 'passkey-alone',
    data: { ...change, token: 'token', reason: 'link', passkey_options: creation, takes_password: false },
  },
  { page: 'change-password', state: 'expired', data: { ...change, other, reason: 'expired' } },
  {
    page: 'change-password',
    state: 'refused',
    status: 422,
    data: { ...change, reason: 'expired', rules: broken, error: { code: 'policy' }, request_id },
  },
  {
    page: 'change-password',
    state: 'chosen',
    data: { ...change, reason: 'chosen', ask_current: true, cancel_url: '/account' },
  },
  {
    page: 'change-password',
    state: 'wrong-current',
    status: 422,
    data: {
      ...change,
      reason: 'chosen',
      ask_current: true,
      cancel_url: '/account',
      error: { code: 'wrong_current' },
      request_id,
    },
  },
  {
    page: 'change-password',
    state: 'link',
    data: { ...change, reason: 'link', token: 'link-token', rules: [] },
  },
  { page: 'set-up', state: 'empty', data: setUp },
  {
    page: 'set-up',
    state: 'refused',
    status: 422,
    data: {
      ...setUp,
      values: { username: 'a', email: 'ada@', first_name: 'Ada', last_name: '' },
      errors: { username: 'username', email: 'email', last_name: 'required', password: 'policy' },
      rules: broken,
      request_id,
    },
  },
  { page: 'invitation', state: 'empty', data: invitation },
  { page: 'invitation', state: 'registration', data: { ...invitation, is_registration: true } },
  { page: 'invitation', state: 'providers', data: { ...invitation, providers: invitedBy } },
  {
    page: 'invitation',
    state: 'signed-in',
    data: { ...openInvitation, signed_in_as: 'grace' },
  },
  {
    page: 'invitation',
    state: 'refused',
    status: 400,
    data: { ...invitation, errors: { username: 'taken', last_name: 'required' }, request_id },
  },
  { page: 'invitation', state: 'password', data: { ...invited, sign_in: { rules, takes_password: true } } },
  {
    page: 'invitation',
    state: 'passkey',
    data: {
      ...invited,
      sign_in: { rules, takes_password: true, options: creation },
    },
  },
  {
    page: 'invitation',
    state: 'passkey-alone',
    data: { ...invited, sign_in: { rules, takes_password: false, options: creation } },
  },
  {
    page: 'invitation',
    state: 'refused-password',
    status: 400,
    data: {
      ...invited,
      errors: { password: 'policy' },
      sign_in: { rules: broken, takes_password: true },
      request_id,
    },
  },
  { page: 'link-account', state: 'usual', data: linkAccount },
  {
    page: 'link-account',
    state: 'refused',
    status: 401,
    data: { ...linkAccount, error: { code: 'invalid_credentials' }, request_id },
  },
  { page: 'complete-profile', state: 'name', data: { ...fromProvider, missing: names, email: ada.email } },
  { page: 'complete-profile', state: 'email', data: { ...fromProvider, missing: ['email'] } },
  {
    page: 'complete-profile',
    state: 'refused',
    status: 422,
    data: {
      ...fromProvider,
      provider: { name: 'Rindfleischetikettierungsüberwachung SSO', kind: 'saml' },
      missing: [...names, 'email'],
      values: { first_name: '', last_name: 'Lovelace', email: 'ada@elsewhere.example' },
      errors: { first_name: 'required', email: 'domain' },
      request_id,
    },
  },
  {
    page: 'form-post',
    state: 'usual',
    data: {
      brand,
      action: 'https://notes.orbit.example/callback',
      client: { name: 'Orbit Notes' },
      fields: { code: 'SplxlOBeZQQYbYS6WxSbIA', state: 'af0ifjsldkj', iss: 'https://id.northwind.example' },
    },
  },
  { page: 'signed-in', state: 'usual', data: { brand, user: ada, account_url: '/account' } },
  {
    page: 'logout-confirm',
    state: 'usual',
    data: { brand, csrf_token: form.csrf_token, action: '/oauth/logout', user: ada, cancel_url: '/account' },
  },
  {
    page: 'logout-confirm',
    state: 'client',
    data: {
      brand,
      csrf_token: form.csrf_token,
      action: '/oauth/logout',
      client_name: 'Orbit Notes',
      fields: { post_logout_redirect_uri: 'https://notes.orbit.example/', state: 'x' },
      cancel_url: '/account',
    },
  },
  {
    page: 'logged-out',
    state: 'client',
    data: {
      brand,
      client_name: 'Orbit Notes',
      return_url: 'https://notes.orbit.example/',
      login_url: '/account',
    },
  },
  { page: 'logged-out', state: 'plain', data: { brand, login_url: '/account' } },
  {
    page: 'confirm',
    state: 'password',
    data: {
      ...confirm,
      has_password: true,
      reset_url: '/reset',
      passkey: { action: '/oauth/passkey', recover_url: '/recover', options: '{}' },
      providers: providers.slice(0, 1),
      change: ['account-security.factors', 'account-security.remove'],
      cancel_url: '/account/profile',
    },
  },
  {
    page: 'confirm',
    state: 'passkey',
    data: {
      ...confirm,
      has_password: false,
      passkey: { action: '/oauth/passkey', recover_url: '/recover', options: JSON.stringify(challenge) },
      cancel_url: '/account/profile',
    },
  },
  {
    page: 'confirm',
    state: 'provider',
    status: 403,
    data: {
      ...confirm,
      has_password: false,
      providers,
      cancel_url: '/account',
      error: { code: 'other_account' },
    },
  },
  { page: 'error', state: 'client', status: 400, data: { brand, code: 'unknown_client', request_id } },
  {
    page: 'error',
    state: 'redirect',
    status: 400,
    data: {
      brand,
      code: 'bad_redirect',
      request: {
        reason: 'redirect_uri_not_registered',
        redirect_uri: 'http://localhost:3000/auth/callback/',
        registered: ['http://localhost:3000/auth/callback', 'https://notes.orbit.example/auth/callback'],
      },
      request_id,
    },
  },
  {
    page: 'error',
    state: 'retry',
    status: 400,
    data: { brand, code: 'expired', retry_url: '/account', is_fallback: true },
  },
  {
    page: 'error',
    state: 'set-up',
    status: 410,
    data: { brand, code: 'set_up', retry_url: '/account' },
  },
  { page: 'error', state: 'no-passkeys', status: 503, data: { brand, code: 'no_passkeys' } },
  {
    page: 'error',
    state: 'throttled',
    status: 429,
    data: { brand, code: 'throttled', seconds: 60, retry_url: '' },
  },
  {
    page: 'error',
    state: 'not-found',
    status: 404,
    data: { brand, code: 'not_found', retry_url: '/account' },
  },
  { page: 'account', state: 'usual', data: account },
  {
    page: 'account',
    state: 'next',
    data: {
      ...account,
      ...soleBrowser,
      next: { ...next, steps: nextSteps('') },
    },
  },
  {
    page: 'account',
    state: 'next-tenant',
    data: {
      ...account,
      ...soleBrowser,
      next: { ...next, steps: nextSteps(' --organization northwind').slice(0, 2), is_operator: false },
    },
  },
  {
    page: 'account',
    state: 'next-mail',
    data: { ...account, ...soleBrowser, next: { ...next, steps: nextSteps('').slice(2) } },
  },
  {
    page: 'account',
    state: 'long',
    data: {
      ...account,
      brand: { name: 'Rindfleischetikettierungsüberwachungsbehörde Mecklenburg-Vorpommern', logo, logo_dark },
      user: {
        ...account.user,
        first_name: 'n'.repeat(64),
        last_name: 'm'.repeat(64),
        email: `${'u'.repeat(64)}@${'d'.repeat(60)}.example`,
      },
      sessions: account.sessions.map(session => ({ ...session, client_name: 'c'.repeat(128) })),
    },
  },
  {
    page: 'account',
    state: 'identities',
    data: {
      ...account,
      notice: 'account_linked',
      ...soleBrowser,
      identities: {
        link_action: '/account/identities/link',
        unlink_action: '/account/identities/unlink',
        linked: [
          {
            provider: 'github',
            name: 'GitHub',
            kind: 'github',
            subject: '583231',
            label: 'ada@northwind.example',
            may_unlink: true,
          },
          {
            provider: 'northwind',
            name: 'Northwind SSO',
            kind: 'saml',
            subject: 'ada',
            label: '',
            may_unlink: false,
          },
        ],
        available: [
          { provider: 'google', name: 'Google', kind: 'google' },
          { provider: 'fabrikam', name: `Fabrikam ${'and its partners '.repeat(4)}`, kind: 'oidc' },
        ],
      },
    },
  },
  {
    page: 'account',
    state: 'notice',
    data: { ...account, notice: 'password_changed', ...soleBrowser },
  },
  {
    page: 'account-profile',
    state: 'usual',
    data: { ...profile, notice: 'saved' },
  },
  {
    page: 'account-profile',
    state: 'pending',
    data: {
      ...profile,
      verify_action: '/account/profile/verify',
      pending_email: 'ada@new.example',
    },
  },
  {
    page: 'account-profile',
    state: 'throttled',
    status: 429,
    data: { ...profile, errors: { email: 'throttled' }, seconds: 3600 },
  },
  { page: 'terms', state: 'usual', data: accepting },
  { page: 'terms', state: 'refused', status: 400, data: { ...accepting, error: { code: 'missing' } } },
  {
    page: 'invitation',
    state: 'terms',
    status: 400,
    data: {
      ...invited,
      sign_in: {
        rules,
        takes_password: true,
        terms,
        error: 'terms',
        options: JSON.stringify({ ...challenge, rp: {}, user: { id: '' } }),
      },
    },
  },
  { page: 'account-profile', state: 'picture', data: { ...profile, picture: logo } },
  {
    page: 'account-profile',
    state: 'refused-picture',
    status: 400,
    data: { ...profile, picture_error: 'pixels' },
  },
  { page: 'account-profile', state: 'attributes', data: { ...profile, attributes } },
  { page: 'attributes', state: 'empty', data: missing },
  {
    page: 'excluded',
    state: 'usual',
    status: 403,
    data: { brand, ...form, action: '/oauth/excluded', client: { name: 'Payroll' }, user: ada, other },
  },
  {
    page: 'attributes',
    state: 'refused',
    status: 400,
    data: { ...missing, attributes: missing.attributes.map(field => ({ ...field, error: 'value' })) },
  },
  { page: 'account-profile', state: 'fixed', data: { ...profile, fixed_email: ada.email } },
  {
    page: 'account-profile',
    state: 'refused',
    status: 400,
    data: {
      ...profile,
      verify_action: '/account/profile/verify',
      errors: { email: 'domain', first_name: 'too_long' },
      request_id,
    },
  },
  { page: 'account-applications', state: 'usual', data: applications },
  {
    page: 'account-applications',
    state: 'none',
    data: { ...applications, applications: [], notice: 'disconnected' },
  },
  { page: 'account-applications', state: 'start', data: { ...applications, startable } },
  { page: 'account-history', state: 'usual', data: history },
  { page: 'account-history', state: 'first', data: { ...history, entries: history.entries.slice(0, 1) } },
  { page: 'account-data', state: 'usual', data: { ...data, deletion: 'possible' } },
  {
    page: 'account-data',
    state: 'refused',
    status: 400,
    data: { ...data, deletion: 'possible', error: { code: 'username' } },
  },
  { page: 'account-data', state: 'administrator', data: { ...data, deletion: 'administrator' } },
  { page: 'deleted', state: 'usual', data: { brand, login_url: '/account' } },
  { page: 'account-security', state: 'usual', data: { ...security, notice: 'factor_added' } },
  { page: 'account-security', state: 'recovered', data: { ...security, notice: 'recovery_code_used' } },
  { page: 'account-security', state: 'full', data: full },
  {
    page: 'account-security',
    state: 'last',
    data: {
      ...security,
      factors: security.factors.slice(1).map(factor => ({ ...factor, kept: 'required' })),
    },
  },
  {
    page: 'account-security',
    state: 'passkey-alone',
    data: {
      ...security,
      has_password: false,
      factors: security.factors.slice(0, 1).map(factor => ({ ...factor, kept: 'only_way_in' })),
    },
  },
  {
    page: 'account-security',
    state: 'code-alone',
    data: { ...security, has_password: false, factors: [], remembered: [], email_code: 'only_way_in' },
  },
  {
    page: 'account-security',
    state: 'none',
    data: { ...security, factors: [], codes_left: 0, remembered: [], email_code: 'off' },
  },
]

/** All mails. `true` means that the mail has a link. */
export const mailKinds: Record<MailKind, boolean> = {
  reset_password: true,
  verify_email: true,
  sign_in_code: true,
  invitation: true,
  registration: true,
  registration_known: true,
  registration_approved: true,
  password_changed: false,
  email_change: false,
  email_changed: false,
  factor_added: false,
  factor_removed: false,
  account_linked: false,
  recovery_code_used: false,
  recovery_codes_replaced: false,
  passkey_copied: false,
  new_device: false,
  webhook_disabled: false,
}

export const letterOf = (kind: MailKind, locale: string): MailContent => ({
  kind,
  locale,
  brand: brand.name,
  name: `${ada.first_name} ${ada.last_name}`,
  data: {
    username: ada.username,
    email: kind.startsWith('email_change') ? 'ada.lovelace@newmail.example' : ada.email,
    time: timeOf(locale, account.now, ['Europe/Berlin']),
    factor: 'Ada’s iPhone',
    provider: 'GitHub',
    count: '7',
    webhook: 'Orbit Notes',
  },
  ...(kind === 'sign_in_code' && { code: '483910' }),
  ...((isNotice(kind) || kind === 'sign_in_code') &&
    kind !== 'webhook_disabled' && {
      details: {
        device: 'Firefox on Linux',
        place: 'Lisbon, Portugal (203.0.113.7)',
        application: 'Orbit Notes',
      },
    }),
  // The mail to a former address has no link, because a stranger could read the mail.
  url:
    kind === 'email_changed' || kind === 'webhook_disabled'
      ? undefined
      : isNotice(kind)
        ? 'https://id.northwind.example/account/security?organization=northwind'
        : `https://id.northwind.example/account/${kind.replaceAll('_', '-')}?token=q3VJ8sZt1xWc5yNf7LbRk2mHd9GpEu4Ao6Ti0QvYzXw`,
})
