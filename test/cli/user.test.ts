import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBrowser } from '#test/support/browser.ts'
import { gatehouse, type Running, serveExecutable } from '#test/support/executable.ts'
import { signIn } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { claimsOf } from '#test/support/tokens.ts'

let server: Running & AsyncDisposable
let env: Record<string, string>

beforeAll(async () => {
  server = await serveExecutable()
  env = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_URL: server.url }
}, 30_000)
afterAll(() => server[Symbol.asyncDispose]())

const user = (args: string[], input = '') => gatehouse(['user', ...args], env, input)
const find = async (username: string) => (await server.admin('GET', `/users?search=${username}`)).body.data[0]

test('create prints a link, or reads a password from standard input; the running server sees the user', async () => {
  const linked = await user(['create', 'ada', '--email', 'ada@example.com', '--first-name', 'Ada'])
  expect([linked.code, linked.stderr]).toEqual([0, ''])
  expect((await fetch(linked.stdout.trim())).status).toBe(200)
  const made = await user(
    ['create', 'boss', '--email', 'boss@example.com', '--role', 'admin', '--password'],
    'Correct-horse-7\n',
  )
  expect([made.code, made.stderr]).toEqual([0, ''])
  expect(await find('boss')).toMatchObject({
    id: made.stdout.trim(),
    roles: ['admin'],
    organization_id: 'org_default',
  })
  expect(await find('ada')).toMatchObject({ first_name: 'Ada', roles: ['user'] })
}, 30_000)

test('refusals are one line that names the field', async () => {
  const cases: [string[], string, RegExp][] = [
    [['create', 'x', '--email', 'x@example.com'], '', /^gatehouse: username: /],
    [['create', 'bob', '--email', 'bob'], '', /^gatehouse: email: /],
    [['create', 'ada', '--email', 'other@example.com'], '', /username/],
    [['create', 'weak', '--email', 'weak@example.com', '--password'], 'short\n', /^gatehouse: password: /],
    [['create', 'bob', '--email', 'bob@example.com', '--organization', 'nowhere'], '', /nowhere/],
    [['create', 'bob', '--email', 'bob@example.com', '--role', 'nothing'], '', /nothing/],
    [['password', 'nobody'], 'Correct-horse-7\n', /no such user/],
    [['unlock', 'nobody'], '', /no such user/],
    [['reset-mfa', 'nobody'], '', /no such user/],
  ]
  for (const [args, input, text] of cases) {
    const { code, stdout, stderr } = await user(args, input)
    expect([args.join(' '), code, stdout]).toEqual([args.join(' '), 1, ''])
    expect(stderr).toMatch(text)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  }
}, 60_000)

test('--invite needs the mail settings on the command, and then mails an invitation', async () => {
  const args = ['create', 'carl', '--email', 'carl@example.com', '--invite']
  expect(await user(args)).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'gatehouse: --invite: set smtp_url and mail_from for this command too, as they are set for the server.\n',
  })
  expect(await find('carl')).toBeUndefined()
  const mail = { GATEHOUSE_SMTP_URL: 'smtp://127.0.0.1:1', GATEHOUSE_MAIL_FROM: 'id@example.com' }
  const { code, stdout, stderr } = await gatehouse(['user', ...args], { ...env, ...mail })
  const { id } = await find('carl')
  expect([code, stdout, stderr]).toEqual([0, `${id}\n`, ''])
  const [invitation, ...others] = (await server.admin('GET', '/invitations')).body.data
  expect(others).toEqual([])
  expect(invitation).toMatchObject({ email: 'carl@example.com', delivery: 'mail', status: 'pending' })
  const events = (await server.admin('GET', '/events?limit=2')).body.data
  expect(events.map(({ type, target_id }: { type: string; target_id: string }) => [type, target_id])).toEqual(
    [
      ['invitation.created', invitation.id],
      ['user.created', id],
    ],
  )
}, 30_000)

test('a link is recorded, and refused for a disabled user', async () => {
  const { id } = await find('ada')
  expect((await user(['link', 'ada'])).code).toBe(0)
  const recorded = (await server.admin('GET', `/events?target_id=${id}&type=user.updated`)).body.data
  expect(recorded.map(({ metadata }: { metadata: unknown }) => metadata)).toEqual([
    { fields: ['sign_in_link'] },
    { fields: ['sign_in_link'] },
  ])
  await user(['create', 'off', '--email', 'off@example.com'])
  await server.admin('PUT', `/users/${(await find('off')).id}`, { enabled: false })
  const { code, stdout, stderr } = await user(['link', 'off'])
  expect([code, stdout, stderr]).toEqual([1, '', 'gatehouse: The user is disabled.\n'])
}, 30_000)

test('without a user name a link is for the first administrator only', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await using fresh = await serveExecutable({}, data_dir)
  const own = { GATEHOUSE_DATA_DIR: data_dir }
  const link = await gatehouse(['user', 'link'], own)
  expect([link.code, link.stderr]).toEqual([0, ''])
  expect(link.stdout).toMatch(new RegExp(`^${fresh.url}/account/set-up\\?token=[\\w-]{43}\n$`))
  await fresh.admin('POST', '/users', {
    username: 'boss',
    email: 'boss@example.com',
    first_name: 'B',
    last_name: 'S',
    password: 'Correct-horse-7',
    roles: ['admin'],
  })
  expect(await gatehouse(['user', 'link'], own)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'gatehouse: there is an administrator already: name the user that the link is for\n',
  })
  expect((await fetch(`${fresh.url}/account/set-up${link.stdout.match(/\?\S+/)?.[0]}`)).status).toBe(410)
}, 30_000)

test('links use the address of the first start unless one is set', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  // An empty text counts as no setting, so the server generates a secret and writes it to a file.
  await using fresh = await serveExecutable({ GATEHOUSE_ADMIN_CLIENT_SECRET: '' }, data_dir)
  const own = { GATEHOUSE_DATA_DIR: data_dir }
  const origin = async (env: Record<string, string>) =>
    new URL((await gatehouse(['user', 'link'], { ...own, ...env })).stdout).origin
  expect(await origin({})).toBe(fresh.url)
  expect(await origin({ GATEHOUSE_PORT: '0' })).toBe(fresh.url)
  expect(await origin({ GATEHOUSE_PORT: '9090' })).toBe('http://localhost:9090')
  expect(await origin({ GATEHOUSE_URL: 'https://id.example.com' })).toBe('https://id.example.com')
}, 30_000)

test('a user name may start like an id', async () => {
  expect((await user(['create', 'usr_odd', '--email', 'odd@example.com'])).code).toBe(0)
  expect((await user(['unlock', 'usr_odd'])).stdout).toBe(
    'the counts of failed attempts of usr_odd are deleted; a blocked network stays blocked\n',
  )
  const token = await gatehouse(['token', '--user', 'usr_odd', '--client', 'gatehouse-admin'], env)
  expect(claimsOf(token.stdout).sub).toBe((await find('usr_odd')).id.slice('usr_'.length))
}, 30_000)

test('in a directory without an instance they fail, and create none', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const data_dir = join(empty, 'data')
  const commands = [
    ['link'],
    ['link', 'ada'],
    ['create', 'ada', '--email', 'a@example.com'],
    ['unlock', 'ada'],
  ]
  for (const args of commands) {
    const { code, stdout, stderr } = await gatehouse(['user', ...args], { GATEHOUSE_DATA_DIR: data_dir })
    expect([args.join(' '), code, stdout]).toEqual([args.join(' '), 78, ''])
    expect(stderr).toContain('there is no instance here')
  }
  expect(existsSync(data_dir)).toBe(false)
  rmSync(empty, { recursive: true })
}, 30_000)

test('EVT-25 password, unlock and reset-mfa work beside the server, by name, address or id', async () => {
  const { id } = await find('ada')
  const changed = await user(['password', 'ada@example.com', '--temporary'], 'Another-horse-8\n')
  expect(changed.stdout).toBe('ada has a new password, to be changed at the next sign-in\n')
  const browser = openBrowser(remote(server))
  await signIn(browser, await browser.get('/account'), 'ada', 'Wrong-horse-7')
  for (let i = 0; i < 2; i++)
    expect((await user(['unlock', 'ada'])).stdout).toBe(
      'the counts of failed attempts of ada are deleted; a blocked network stays blocked\n',
    )
  expect((await user(['reset-mfa', id])).stdout).toBe('ada: 0 factors removed\n')
  const { body } = await server.admin('GET', `/events?target_id=${id}`)
  expect(body.data.map(({ type, actor_id }: { type: string; actor_id: null }) => [type, actor_id])).toEqual([
    ['user.unlocked', null],
    ['user.login_failed', null],
    ['user.password_reset', null],
    ['user.updated', null],
    ['user.updated', null],
    ['user.created', null],
  ])
}, 30_000)
