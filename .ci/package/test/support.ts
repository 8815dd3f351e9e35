import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'bun'
import type { Json, TestApp } from '#test/support/app.ts'
import { answerOf, openBrowser, unescapeHtml } from '#test/support/browser.ts'
import { authorizeUrl, signIn, VERIFIER } from '#test/support/people.ts'
import { version } from '../../../package.json'
import { names, pythonVersion } from '../names.ts'

export const ROOT = join(import.meta.dir, '../../..')
const out = join(ROOT, 'dist/packages')
/** Names of the built files. */
export const files = readdirSync(out)

/** Returns the path of a built file. */
export const built = (name: string): string => {
  if (!files.includes(name)) throw new Error(`dist/packages lacks ${name}: run \`bun run package\` first`)
  return join(out, name)
}

/** Makes an empty folder. */
export const place = (): string => mkdtempSync(join(tmpdir(), 'gatehouse-test-'))

/** Returns the path of the wheel with this platform tag. */
export const wheel = (tag: string): string =>
  built(`${names.pypi.replaceAll('-', '_')}-${pythonVersion(version)}-py3-none-${tag}.whl`)

let unpacked: Promise<string> | undefined
/** Unpacks the archive once and returns the path of its executable. */
export const executable = (): Promise<string> => {
  unpacked ??= (async () => {
    const at = place()
    await $`tar -xzf ${built(`gatehouse-${version}-linux-x64.tar.gz`)} --strip-components=1`.cwd(at)
    return join(at, 'gatehouse')
  })()
  return unpacked
}

/**
 * All servers that were started. The test process kills them when it exits, because a failed test may leave
 * them running.
 */
const started = new Set<Bun.Subprocess>()
process.on('exit', () => {
  for (const child of started) child.kill('SIGKILL')
})

export interface Running {
  url: string
  stop(): Promise<void>
}

/**
 * Starts a server with the command and waits for its ready line.
 *
 * @param command the executable and its arguments
 */
export const start = async (command: string[], env: Record<string, string> = {}): Promise<Running> => {
  const child = Bun.spawn(command, {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  started.add(child)
  const reader = child.stdout.getReader()
  let text = ''
  while (!text.includes('\n')) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`${command.join(' ')} ended: ${await new Response(child.stderr).text()}`)
    text += new TextDecoder().decode(value)
  }
  const { url } = JSON.parse(text.split('\n', 1)[0] ?? '')
  const stop = async () => {
    // unshare ignores SIGTERM and ends when its child, the server, ends. The signal therefore goes to the
    // child.
    const [inner = ''] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ')
    process.kill(command[0] === 'unshare' ? Number(inner) : child.pid, 'SIGTERM')
    await child.exited
  }
  return { url, stop }
}

/** Returns the arguments to put before a command. The command then runs with `root` as its root directory. */
export const inRoot = (root: string, user = 'root'): string[] => {
  const mounts = `mount --rbind /dev ${root}/dev && mount -t proc proc ${root}/proc`
  const change = `exec chroot --userspec=${user} ${root} "$@"`
  return [
    ...['unshare', '--mount', '--pid', '--fork', '--kill-child=TERM'],
    ...['sh', '-c', `mkdir -p ${root}/dev ${root}/proc && ${mounts} && ${change}`, 'sh'],
  ]
}

/**
 * Makes a root directory that contains packages of Debian.
 *
 * @param suite release of Debian; default: the release of this machine
 * @param variant of mmdebstrap(1): `essential` makes a root that can install packages, `extract` makes a root
 *   that can only run programs
 */
export const debianRoot = async (
  variant: 'essential' | 'extract',
  packages: string,
  suite?: string,
): Promise<string> => {
  const sources = '/etc/apt/sources.list.d/debian.sources'
  const text = readFileSync(sources, 'utf8')
  const [, own = ''] = /^Suites: (\S+)/m.exec(text) ?? []
  const [, mirror = ''] = /^URIs: (\S+)/m.exec(text) ?? []
  const root = join(place(), 'root')
  await $`mmdebstrap --quiet --variant=${variant} --include=${packages} ${suite ?? own} ${root} ${suite ? mirror : sources}`.quiet()
  return root
}

/** A person, and the client at which they sign in. The default values are those of development mode. */
interface Login {
  client_id?: string
  redirect_uri?: string
  username?: string
  password?: string
}

/**
 * Signs a person in as a browser does: authorization code flow with PKCE, and the password on the login page.
 *
 * @returns the `preferred_username` of userinfo
 */
export const logIn = async (
  url: string,
  {
    client_id = 'dev-web',
    redirect_uri = 'http://localhost:3000/callback',
    username = 'alice',
    password = 'Gatehouse-dev-1',
  }: Login = {},
): Promise<string> => {
  const call = (path: string, init?: RequestInit) =>
    fetch(new URL(path, url), { ...init, redirect: 'manual' })
  const browser = openBrowser({ call, context: { config: { url } } } as unknown as TestApp)
  const request = authorizeUrl(client_id, { redirect_uri, scope: 'openid profile' })
  let page = await browser.follow(await browser.get(request))
  // In development mode the first page offers a choice of users instead of the login form.
  const [, form] = /href="([^"]+)"[^>]*>Sign in with a password/.exec(page.html) ?? []
  if (form) page = await browser.get(unescapeHtml(form))
  const { code = '' } = answerOf(await signIn(browser, page, username, password))
  const grant = { grant_type: 'authorization_code', code, client_id, redirect_uri, code_verifier: VERIFIER }
  const tokens = await call('/oauth/token', { method: 'POST', body: new URLSearchParams(grant) })
  const { access_token }: Json = await tokens.json()
  const info = await call('/oauth/userinfo', { headers: { authorization: `Bearer ${access_token}` } })
  const { preferred_username }: Json = await info.json()
  return preferred_username
}

/** Starts a development server with the command, signs alice in and stops the server. */
export const developAndLogIn = async (...command: string[]): Promise<string> => {
  const server = await start([...command, 'dev', '--port', '0'])
  return await logIn(server.url).finally(server.stop)
}

/** Runs a command to its end. */
export const run = async (
  command: string[],
  { cwd = '/', env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<{ code: number; stdout: string; stderr: string }> => {
  const child = Bun.spawn(command, {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code: await child.exited, stdout, stderr }
}

/** Returns the arguments to put before a command. The command then cannot write to the folder. */
export const withReadOnly = (folder: string): string[] => [
  ...['unshare', '--mount', 'sh', '-c'],
  `mount --bind ${folder} ${folder} && mount -o remount,bind,ro ${folder} && exec "$@"`,
  'sh',
]

/** Returns the SHA-256 of each file below a folder, by path. */
export const sums = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name))
      .map(path => [path, new Bun.CryptoHasher('sha256').update(readFileSync(path)).digest('hex')]),
  )
