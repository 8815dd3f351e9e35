import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { testWith } from './debian.ts'

const PROGRAM = '/usr/bin/chromium'

export const testInChromium = testWith('chromium', PROGRAM)

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

let running: Promise<Browser> | undefined

/** Starts one Chromium for the whole file. Each test has its own context with its own cookies. */
const browser = (): Promise<Browser> => {
  running ??= chromium.launch({ executablePath: PROGRAM, args: flags })
  return running
}

export const closeChromium = async (): Promise<void> => {
  await (await running)?.close()
  running = undefined
}

export interface Opened {
  page: Page
  close(): Promise<void>
}

/** Opens a page in a fresh browser profile. */
export const openPage = async (options: BrowserContextOptions = {}): Promise<Opened> => {
  const context = await (await browser()).newContext(options)
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  return { page, close: () => context.close() }
}

/**
 * Adds a virtual authenticator to the page. The authenticator answers every request until `answer(false)`.
 */
export const withAuthenticator = async (page: Page) => {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    answer: (enabled: boolean) =>
      session.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }),
    credentials: async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
  }
}

/**
 * Starts a real server that acts as the client. Redirects lead to this server. Each URL shows an empty page.
 */
export const startClient = (): { origin: string; stop(): Promise<void> } => {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response('<!doctype html><title>The client</title>', { headers: { 'content-type': 'text/html' } }),
  })
  return { origin: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}
