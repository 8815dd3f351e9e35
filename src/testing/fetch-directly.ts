import type { IncomingMessage } from 'node:http'

/** The part of `fetch` that the controls use. */
type ControlCall = (
  url: string,
  init: { method?: string; headers: Record<string, string>; body?: string; signal?: AbortSignal },
) => Promise<Response>

/**
 * Returns a `fetch` that uses no proxy and trusts the certificate in the file, if one is given. The `fetch`
 * of Bun and Deno would send the control token to the proxy of HTTP_PROXY, and that of Node has no option for
 * a certificate. All three have `node:http`.
 */
export const fetchDirectly =
  (ca_file?: string | null): ControlCall =>
  async (url, { body, ...init }) => {
    const [{ Agent, request }, { readFile }, { Readable }] = await Promise.all([
      url.startsWith('https:') ? import('node:https') : import('node:http'),
      import('node:fs/promises'),
      import('node:stream'),
    ])
    const ca = ca_file ? await readFile(ca_file) : undefined
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      // With NODE_USE_ENV_PROXY, Node and Deno would take the proxy from the environment.
      request(url, { ...init, agent: new Agent({ proxyEnv: {} }), ...(ca && { ca }) }, resolve)
        .on('error', reject)
        .end(body)
    })
    const { statusCode: status = 0 } = message
    const content = Readable.toWeb(message) as unknown as ReadableStream
    return new Response(status === 204 ? null : content, { status })
  }
