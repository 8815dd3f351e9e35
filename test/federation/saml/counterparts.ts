import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attributeOf, find, parseXml, textOf } from '#src/protocol/saml/xml.ts'
import type { TestApp } from '#test/support/app.ts'
import { unescapeHtml } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { freePort } from '#test/support/free-port.ts'
import { certify } from '#test/support/saml/certificate.ts'
import { newPair } from '#test/support/saml/identity-provider.ts'

export const SIMPLESAML = '/usr/share/simplesamlphp/www'
export const PYSAML2 = '/usr/lib/python3/dist-packages/saml2/__init__.py'

/** Settings of the identity provider for the service provider with this alias. */
export interface Wanted {
  alias: string
  sign_response: boolean
  sign_assertion: boolean
  encrypt: boolean
}

/** Adds Gatehouse's metadata for the alias, as the provider's administrator gets it. */
export interface Known extends Wanted {
  entity_id: string
  acs_url: string
  /** DER in base64. */
  certificate: string
  metadata: string
}

/**
 * Creates the providers in Gatehouse with placeholder metadata. The real metadata of a provider follows when
 * the provider runs.
 */
export const introduce = async (app: TestApp, prefix: string, wanted: Wanted[]): Promise<Known[]> => {
  const certificates = [await certify(newPair())]
  const known: Known[] = []
  for (const each of wanted) {
    const alias = `${prefix}-${each.alias}`
    const stand_in = { entity_id: 'https://idp.example/', sso_url: 'https://idp.example/', certificates }
    await create(app, '/identity-providers', {
      type: 'saml',
      alias,
      name: alias,
      ...stand_in,
      trust_email: true,
    })
    const metadata = await (await app.call(`/saml/${alias}/metadata`)).text()
    const root = parseXml(metadata)
    const descriptor = find(root, 'md:SPSSODescriptor')
    known.push({
      ...each,
      alias,
      metadata,
      entity_id: attributeOf(root, 'entityID') ?? '',
      acs_url: attributeOf(find(descriptor, 'md:AssertionConsumerService'), 'Location') ?? '',
      certificate: textOf(find(descriptor, 'md:KeyDescriptor')),
    })
  }
  return known
}

/** A real identity provider in a separate process. */
export interface Counterpart extends AsyncDisposable {
  origin: string
  metadata_url: string
}

const start = async (
  command: string[],
  folder: string,
  metadata_url: string,
  env: Record<string, string>,
): Promise<Counterpart> => {
  const child = Bun.spawn(command, {
    env: { ...process.env, ...env },
    stdout: 'ignore',
    stderr: Bun.file(join(folder, 'log')),
  })
  const stop = async () => {
    child.kill()
    await child.exited
    rmSync(folder, { recursive: true })
  }
  while (child.exitCode === null) {
    const answer = await fetch(metadata_url).catch(() => undefined)
    if (answer?.ok) return { origin: new URL(metadata_url).origin, metadata_url, [Symbol.asyncDispose]: stop }
    if (answer) break
    await Bun.sleep(25)
  }
  const log = await Bun.file(join(folder, 'log')).text()
  await stop()
  throw new Error(`${command[0]} did not come up: ${log.slice(-2000)}`)
}

const keyFiles = async (folder: string): Promise<void> => {
  const pair = newPair()
  writeFileSync(join(folder, 'idp.crt'), await certify(pair))
  writeFileSync(join(folder, 'idp.pem'), pair.privateKey.export({ format: 'pem', type: 'pkcs8' }))
}

const php = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(php).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `[${Object.entries(value)
      .map(([key, each]) => `${php(key)} => ${php(each)}`)
      .join(', ')}]`
  return typeof value === 'string'
    ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
    : String(value)
}

/** Runs SimpleSAMLphp under PHP's web server. The only user is `ada` with the password `adapass`. */
export const startSimpleSaml = async (parties: Known[]): Promise<Counterpart> => {
  const folder = mkdtempSync(join(tmpdir(), 'simplesaml-'))
  const [config, metadata, data] = ['config', 'metadata', 'data'].map(name => join(folder, name))
  for (const each of [config, metadata, data]) mkdirSync(each ?? '')
  await keyFiles(folder)
  const origin = `http://127.0.0.1:${freePort()}`
  const write = (path: string, name: string, value: unknown) =>
    writeFileSync(path, `<?php\n$${name} = ${php(value)};\n`)
  write(join(config ?? '', 'config.php'), 'config', {
    baseurlpath: `${origin}/`,
    certdir: `${folder}/`,
    metadatadir: `${metadata}/`,
    datadir: `${data}/`,
    tempdir: data,
    loggingdir: data,
    'logging.handler': 'errorlog',
    'logging.level': 5,
    secretsalt: 'a salt of this test alone',
    'auth.adminpassword': 'not the usual one',
    timezone: 'UTC',
    'enable.saml20-idp': true,
    'session.cookie.secure': false,
    'session.phpsession.savepath': data,
    'store.type': 'phpsession',
    'module.enable': { exampleauth: true, core: true, saml: true },
    'metadata.sources': [{ type: 'flatfile' }],
    'language.available': ['en'],
    'language.default': 'en',
  })
  write(join(config ?? '', 'authsources.php'), 'config', {
    people: {
      0: 'exampleauth:UserPass',
      'ada:adapass': { uid: ['ada'], mail: ['ada@upstream.example'], givenName: ['Ada'], sn: ['Lovelace'] },
    },
  })
  write(join(metadata ?? '', 'saml20-idp-hosted.php'), "metadata['__DYNAMIC:1__']", {
    host: '__DEFAULT__',
    privatekey: 'idp.pem',
    certificate: 'idp.crt',
    auth: 'people',
    'redirect.validate': true,
    'signature.algorithm': 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  })
  const remote = Object.fromEntries(
    parties.map(party => [
      party.entity_id,
      {
        AssertionConsumerService: party.acs_url,
        certData: party.certificate,
        NameIDFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
        'simplesaml.nameidattribute': 'uid',
        'validate.authnrequest': true,
        'saml20.sign.response': party.sign_response,
        'saml20.sign.assertion': party.sign_assertion,
        'assertion.encryption': party.encrypt,
        AttributeNameFormat: 'urn:oasis:names:tc:SAML:2.0:attrname-format:basic',
      },
    ]),
  )
  write(join(metadata ?? '', 'saml20-sp-remote.php'), 'metadata', remote)
  const server = ['php', '-S', origin.slice('http://'.length), '-t', SIMPLESAML]
  return start(server, folder, `${origin}/saml2/idp/metadata.php`, { SIMPLESAMLPHP_CONFIG_DIR: config ?? '' })
}

/** Runs an identity provider of pysaml2, which signs every user in as `grace`. */
export const startPysaml2 = async (parties: Known[]): Promise<Counterpart> => {
  const folder = mkdtempSync(join(tmpdir(), 'pysaml2-'))
  await keyFiles(folder)
  for (const { alias, metadata } of parties) writeFileSync(join(folder, `${alias}.xml`), metadata)
  writeFileSync(join(folder, 'parties.json'), JSON.stringify(parties))
  const port = freePort()
  const script = join(import.meta.dir, 'pysaml2-provider.py')
  return start(
    ['/usr/bin/python3', script, folder, String(port)],
    folder,
    `http://127.0.0.1:${port}/metadata`,
    {},
  )
}

/**
 * Acts as a user's browser at a real provider. Follows redirects, fills in the provider's form, and returns
 * the form that the browser would post to Gatehouse.
 */
export const answerAt = async (
  location: string,
  who: Record<string, string> = {},
): Promise<{ action: string; fields: Record<string, string> }> => {
  const jar = new Map<string, string>()
  let request: [string, RequestInit] = [location, {}]
  for (let hop = 0; hop < 10; hop++) {
    const [url, init] = request
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { ...init, redirect: 'manual', headers: { ...init.headers, cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';', 1)[0]?.split('=') ?? []
      jar.set(name, value)
    }
    const next = answer.headers.get('location')
    const html = await answer.text()
    if (next) {
      request = [new URL(next, url).href, {}]
      continue
    }
    const form = /<form[\s\S]*?<\/form>/i.exec(html)?.[0] ?? ''
    const attribute = (tag: string, name: string) =>
      unescapeHtml(new RegExp(`${name}="([^"]*)"`).exec(tag)?.[1] ?? '')
    const inputs = form.match(/<input[^>]*>/gi) ?? []
    const fields = Object.fromEntries(inputs.map(tag => [attribute(tag, 'name'), attribute(tag, 'value')]))
    const action = new URL(attribute(form, 'action') || url, url).href
    if ('SAMLResponse' in fields) return { action, fields }
    if (!form)
      throw new Error(
        `the provider answered ${answer.status}: ${html
          .replace(/<[^>]+>/g, ' ')
          .replace(/\s+/g, ' ')
          .slice(0, 600)}`,
      )
    const body = new URLSearchParams({ ...fields, ...who })
    request = [action, { method: 'POST', body }]
  }
  throw new Error('the provider asks without end')
}
