import { describe, expect, test } from 'bun:test'
import { type Prompt, promptValues } from '#src/protocol/oauth/authorize-request.ts'
import { type EligibleLogin, type FlowFacts, type NextStep, nextStep } from '#src/protocol/oauth/next-step.ts'

type Facts = FlowFacts<EligibleLogin>

const now = 1_700_000_000_000
const login = (id: string, changes: Partial<EligibleLogin> = {}): EligibleLogin => ({
  id,
  user_id: `usr_${id}`,
  auth_time: now - 60_000,
  enabled: true,
  must_change_password: false,
  enrol_due: false,
  may_enrol: true,
  factor_due: false,
  is_excluded: false,
  attributes_due: false,
  terms_due: false,
  offer_due: false,
  has_consented: true,
  ...changes,
})
const facts = (changes: Partial<Facts>): Facts => ({
  prompts: [],
  choose: false,
  max_age: undefined,
  now,
  logins: [],
  chosen_login_id: undefined,
  is_authenticated: false,
  hinted_user_id: undefined,
  consent_required: true,
  always_ask: false,
  consent_given_by: undefined,
  ...changes,
})

const a = login('a')
const b = login('b', { auth_time: now - 120_000 })
const two = { logins: [a, b] }
const picked = { chosen_login_id: 'b' }
const proven = { chosen_login_id: 'a', is_authenticated: true }
const approved = { consent_given_by: 'usr_a' }
const unconsented = login('a', { has_consented: false })

/** The states that are named in the table below, with their facts. */
const states: Record<string, Partial<Facts>> = {
  'no login': {},
  'a login': { logins: [a] },
  'two logins': two,
  'two logins, the older picked': { ...two, ...picked },
  'just signed in': { logins: [a], ...proven },
  'just signed in beside another': { ...two, ...proven },
  'just signed in and approved': { logins: [a], ...proven, ...approved },
  'approved by another user': { logins: [a], ...proven, consent_given_by: 'usr_b' },
  'picked, then approved': { ...two, chosen_login_id: 'a', ...approved },
  'chosen login gone': { logins: [b], ...proven },
  'proven, but no login chosen': { logins: [a], is_authenticated: true },
  'no login left': { ...proven, ...approved },
  'disabled user': { logins: [login('a', { enabled: false })] },
  'disabled user just signed in': { logins: [login('a', { enabled: false })], ...proven, ...approved },
  'one of two disabled': { logins: [login('a', { enabled: false }), b] },
  'password change due': { logins: [login('a', { must_change_password: true })] },
  'enrolment due': { logins: [login('a', { enrol_due: true })] },
  'enrolment due, proven five minutes ago': {
    logins: [login('a', { enrol_due: true, auth_time: now - 300_000 })],
  },
  'enrolment due, proven before that': {
    logins: [login('a', { enrol_due: true, auth_time: now - 300_001 })],
  },
  'enrolment due, picked, proven before that': {
    logins: [login('a', { enrol_due: true, auth_time: now - 300_001 }), b],
    chosen_login_id: 'a',
  },
  'enrolment due, proven in this flow': {
    logins: [login('a', { enrol_due: true, auth_time: now - 300_001 })],
    ...proven,
  },
  'enrolment due, not allowed': { logins: [login('a', { enrol_due: true, may_enrol: false })] },
  'password change due, proven long ago': {
    logins: [login('a', { must_change_password: true, auth_time: now - 300_001 })],
  },
  'factor due, proven long ago': {
    logins: [login('a', { factor_due: true, auth_time: now - 300_001 })],
  },
  'factor due': { logins: [login('a', { factor_due: true })] },
  'factor due, just signed in': { logins: [login('a', { factor_due: true })], ...proven, ...approved },
  'all due': {
    logins: [
      login('a', { must_change_password: true, enrol_due: true, factor_due: true, has_consented: false }),
    ],
  },
  'enrolment and factor due': {
    logins: [login('a', { enrol_due: true, factor_due: true, has_consented: false })],
  },
  'enrolment and password change due': {
    logins: [login('a', { must_change_password: true, enrol_due: true, has_consented: false })],
  },
  'factor and password change due': {
    logins: [login('a', { must_change_password: true, factor_due: true, has_consented: false })],
  },
  'no consent yet': { logins: [unconsented] },
  'not admitted': {
    logins: [login('a', { is_excluded: true, attributes_due: true, enrol_due: true, has_consented: false })],
  },
  'attributes due': { logins: [login('a', { attributes_due: true, has_consented: false })] },
  'attributes and enrolment due': { logins: [login('a', { attributes_due: true, enrol_due: true })] },
  'no consent yet, none required': { logins: [unconsented], consent_required: false },
  'private scheme': { logins: [a], always_ask: true },
  'private scheme, none required': { logins: [a], always_ask: true, consent_required: false },
  'private scheme, approved': { logins: [a], always_ask: true, ...proven, ...approved },
  'max_age reached': { logins: [a], max_age: 60 },
  'max_age elapsed': { logins: [a], max_age: 59 },
  'max_age elapsed for one of two': { ...two, max_age: 60 },
  'max_age elapsed for the picked one': { ...two, ...picked, max_age: 60 },
  'max_age elapsed since this login': { logins: [a], ...proven, ...approved, max_age: 59 },
  'max_age 0': { logins: [login('a', { auth_time: now })], max_age: 0 },
  'max_age 0, just signed in': { logins: [a], ...proven, ...approved, max_age: 0 },
  'clock stepped back': { logins: [login('a', { auth_time: now + 5000 })], max_age: 1 },
  'hint of this user': { logins: [a], hinted_user_id: 'usr_a' },
  'hint of the older of two': { ...two, hinted_user_id: 'usr_b' },
  'hint of another user': { logins: [a], hinted_user_id: 'usr_c' },
  'another than the hinted user signed in': { ...two, ...proven, hinted_user_id: 'usr_b' },
  'the hinted user signed in': { ...two, ...proven, ...approved, hinted_user_id: 'usr_a' },
}

// O-46, O-48, O-49, O-50, O-66: every prompt in every state. `pick` stands for the step select_account. The
// letter after a step names the login of the step. With prompt=none, the result is a refusal or a code.
const table = `
state                                  | no prompt         | none                 | login          | consent          | select_account    | login consent  | login select_account | consent select_account | login consent select_account
no login                               | login             | login_required       | login          | login            | login             | login          | login                | login                  | login
a login                                | issue a           | issue a              | login          | consent a        | issue a           | login          | login                | consent a              | login
two logins                             | issue a           | issue a              | login          | consent a        | pick a+b          | login          | login                | pick a+b               | login
two logins, the older picked           | issue b           | issue b              | login b        | consent b        | issue b           | login b        | login b              | consent b              | login b
just signed in                         | issue a           | issue a              | issue a        | consent a        | issue a           | consent a      | issue a              | consent a              | consent a
just signed in beside another          | issue a           | issue a              | issue a        | consent a        | issue a           | consent a      | issue a              | consent a              | consent a
just signed in and approved            | issue a           | issue a              | issue a        | issue a          | issue a           | issue a        | issue a              | issue a                | issue a
approved by another user               | issue a           | issue a              | issue a        | consent a        | issue a           | consent a      | issue a              | consent a              | consent a
picked, then approved                  | issue a           | issue a              | login a        | issue a          | issue a           | login a        | login a              | issue a                | login a
chosen login gone                      | login             | login_required       | login          | login            | login             | login          | login                | login                  | login
proven, but no login chosen            | issue a           | issue a              | login          | consent a        | issue a           | login          | login                | consent a              | login
no login left                          | login             | login_required       | login          | login            | login             | login          | login                | login                  | login
disabled user                          | login             | login_required       | login          | login            | login             | login          | login                | login                  | login
disabled user just signed in           | login             | login_required       | login          | login            | login             | login          | login                | login                  | login
one of two disabled                    | issue b           | issue b              | login          | consent b        | issue b           | login          | login                | consent b              | login
password change due                    | change_password a | interaction_required | login          | change_password a| change_password a | login          | login                | change_password a      | login
enrolment due                          | enrol a           | interaction_required | login          | enrol a          | enrol a           | login          | login                | enrol a                | login
enrolment due, proven five minutes ago | enrol a           | interaction_required | login          | enrol a          | enrol a           | login          | login                | enrol a                | login
enrolment due, proven before that      | login a           | interaction_required | login          | login a          | login a           | login          | login                | login a                | login
enrolment due, picked, proven before that | login a        | interaction_required | login a        | login a          | login a           | login a        | login a              | login a                | login a
enrolment due, proven in this flow     | enrol a           | interaction_required | enrol a        | enrol a          | enrol a           | enrol a        | enrol a              | enrol a                | enrol a
enrolment due, not allowed             | unmet             | unmet                | login          | unmet            | unmet             | login          | login                | unmet                  | login
password change due, proven long ago   | login a           | interaction_required | login          | login a          | login a           | login          | login                | login a                | login
factor due, proven long ago            | second_factor a   | interaction_required | login          | second_factor a  | second_factor a   | login          | login                | second_factor a        | login
factor due                             | second_factor a   | interaction_required | login          | second_factor a  | second_factor a   | login          | login                | second_factor a        | login
factor due, just signed in             | second_factor a   | interaction_required | second_factor a| second_factor a  | second_factor a   | second_factor a| second_factor a      | second_factor a        | second_factor a
all due                                | second_factor a   | interaction_required | login          | second_factor a  | second_factor a   | login          | login                | second_factor a        | login
enrolment and factor due               | second_factor a   | interaction_required | login          | second_factor a  | second_factor a   | login          | login                | second_factor a        | login
enrolment and password change due      | change_password a | interaction_required | login          | change_password a| change_password a | login          | login                | change_password a      | login
factor and password change due         | second_factor a   | interaction_required | login          | second_factor a  | second_factor a   | login          | login                | second_factor a        | login
no consent yet                         | consent a         | consent_required     | login          | consent a        | consent a         | login          | login                | consent a              | login
not admitted                           | excluded a        | access_denied        | login          | excluded a       | excluded a        | login          | login                | excluded a             | login
attributes due                         | attributes a      | interaction_required | login          | attributes a     | attributes a      | login          | login                | attributes a           | login
attributes and enrolment due           | enrol a           | interaction_required | login          | enrol a          | enrol a           | login          | login                | enrol a                | login
no consent yet, none required          | issue a           | issue a              | login          | consent a        | issue a           | login          | login                | consent a              | login
private scheme                         | consent a         | consent_required     | login          | consent a        | consent a         | login          | login                | consent a              | login
private scheme, none required          | consent a         | consent_required     | login          | consent a        | consent a         | login          | login                | consent a              | login
private scheme, approved               | issue a           | issue a              | issue a        | issue a          | issue a           | issue a        | issue a              | issue a                | issue a
max_age reached                        | issue a           | issue a              | login          | consent a        | issue a           | login          | login                | consent a              | login
max_age elapsed                        | login a           | login_required       | login          | login a          | login a           | login          | login                | login a                | login
max_age elapsed for one of two         | issue a           | issue a              | login          | consent a        | pick a+b          | login          | login                | pick a+b               | login
max_age elapsed for the picked one     | login b           | login_required       | login b        | login b          | login b           | login b        | login b              | login b                | login b
max_age elapsed since this login       | issue a           | issue a              | issue a        | issue a          | issue a           | issue a        | issue a              | issue a                | issue a
max_age 0                              | login a           | login_required       | login          | login a          | login a           | login          | login                | login a                | login
max_age 0, just signed in              | issue a           | issue a              | issue a        | issue a          | issue a           | issue a        | issue a              | issue a                | issue a
clock stepped back                     | issue a           | issue a              | login          | consent a        | issue a           | login          | login                | consent a              | login
hint of this user                      | issue a           | issue a              | login a        | consent a        | issue a           | login a        | login a              | consent a              | login a
hint of the older of two               | issue b           | issue b              | login b        | consent b        | issue b           | login b        | login b              | consent b              | login b
hint of another user                   | login             | login_required       | login          | login            | login             | login          | login                | login                  | login
another than the hinted user signed in | login_required    | login_required       | login_required | login_required   | login_required    | login_required | login_required       | login_required         | login_required
the hinted user signed in              | issue a           | issue a              | issue a        | issue a          | issue a           | issue a        | issue a              | issue a                | issue a
`
const [header = [], ...rows] = table
  .trim()
  .split('\n')
  .map(line => line.split('|').map(cell => cell.trim()))
const prompts = header.slice(1).map(name => name.split(' ').filter(isPrompt))

function isPrompt(text: string): text is Prompt {
  return promptValues.some(value => value === text)
}

/** Returns a step in the notation of the table. */
const word = (next: NextStep<EligibleLogin>) => {
  if (next.step === 'refuse') return next.error.replace('unmet_authentication_requirements', 'unmet')
  if (next.step === 'select_account') return `pick ${next.logins.map(({ id }) => id).join('+')}`
  return next.login ? `${next.step} ${next.login.id}` : next.step
}

test.each(rows)('%s', (state, ...expected) => {
  expect(prompts.map(prompt => word(nextStep(facts({ ...states[state], prompts: prompt }))))).toEqual(
    expected,
  )
})

test('the table covers every state and every prompt', () => {
  expect(rows.map(([state]) => state)).toEqual(Object.keys(states))
  expect(new Set(prompts.map(String)).size).toBe(9)
})

describe('in every state', () => {
  const yesOrNo = [false, true]
  const logins = [true, false].flatMap(enabled =>
    yesOrNo.flatMap(must_change_password =>
      yesOrNo.flatMap(enrol_due =>
        yesOrNo.flatMap(factor_due =>
          yesOrNo.flatMap(has_consented =>
            [60_000, 300_001].flatMap(age =>
              yesOrNo.map(may_enrol =>
                login('a', {
                  enabled,
                  attributes_due: !may_enrol,
                  terms_due: !may_enrol && !has_consented,
                  is_excluded: enrol_due && !may_enrol && !has_consented,
                  must_change_password,
                  enrol_due,
                  may_enrol,
                  factor_due,
                  has_consented,
                  auth_time: now - age,
                }),
              ),
            ),
          ),
        ),
      ),
    ),
  )
  const all = prompts.flatMap(prompt =>
    logins.flatMap(one =>
      [[], [one], [one, b]].flatMap(many =>
        [{}, { chosen_login_id: 'a' }, proven].flatMap(chosen =>
          [undefined, 0, 59, 60].flatMap(max_age =>
            [undefined, 'usr_a', 'usr_b'].flatMap(hinted_user_id =>
              [{}, approved, { always_ask: true }, { always_ask: true, ...approved }].map(consent =>
                facts({ prompts: prompt, logins: many, max_age, hinted_user_id, ...chosen, ...consent }),
              ),
            ),
          ),
        ),
      ),
    ),
  )
  const answered = all.map(given => ({ given, next: nextStep(given) }))

  test('O-46 prompt=none never shows a page', () => {
    const steps = answered.flatMap(({ given, next }) => (given.prompts.includes('none') ? [next.step] : []))
    expect(new Set(steps)).toEqual(new Set(['issue', 'refuse']))
  })

  test('O-48 O-69 a code is issued only when nothing is due', () => {
    const wrong = answered.filter(({ given, next }) => {
      if (next.step !== 'issue') return false
      const { login: one } = next
      const isProven = given.is_authenticated && given.chosen_login_id === one.id
      const isApproved = given.consent_given_by === one.user_id
      const isDue =
        !one.enabled ||
        one.must_change_password ||
        one.enrol_due ||
        one.factor_due ||
        one.attributes_due ||
        one.terms_due ||
        one.is_excluded
      const isAskedAgain = given.prompts.includes('login') || given.max_age === 0
      const isOld = given.max_age !== undefined && now - one.auth_time > given.max_age * 1000
      const isUnapproved = given.prompts.includes('consent') || given.always_ask || !one.has_consented
      const isSomeoneElse = given.hinted_user_id !== undefined && given.hinted_user_id !== one.user_id
      return isDue || isSomeoneElse || ((isAskedAgain || isOld) && !isProven) || (isUnapproved && !isApproved)
    })
    expect(wrong).toEqual([])
  })

  test('a password or factor is changed only after the second factor, and with authentication in this flow or within five minutes', () => {
    const changes = answered.filter(({ next }) => next.step === 'enrol' || next.step === 'change_password')
    const wrong = changes.filter(({ given, next }) => {
      if (next.step !== 'enrol' && next.step !== 'change_password') return true
      const { login: one } = next
      const isProven = given.is_authenticated && given.chosen_login_id === one.id
      if (next.step === 'enrol' && (one.must_change_password || !one.may_enrol)) return true
      return one.factor_due || !(isProven || now - one.auth_time <= 300_000)
    })
    expect(changes.length).toBeGreaterThan(0)
    expect(wrong).toEqual([])
  })

  test('every step and every refusal occurs', () => {
    expect(new Set(answered.map(({ next }) => (next.step === 'refuse' ? next.error : next.step)))).toEqual(
      new Set([
        ...([
          'login',
          'select_account',
          'change_password',
          'enrol',
          'second_factor',
          'attributes',
          'excluded',
          'access_denied',
          'consent',
          'issue',
        ] as const),
        ...([
          'login_required',
          'consent_required',
          'interaction_required',
          'unmet_authentication_requirements',
        ] as const),
      ]),
    )
  })
})
