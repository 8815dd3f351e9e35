/** The subset of `fetch` used by this package. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * Returns true in runtimes that cancel the calls of a request when the request ends: Cloudflare Workers, and
 * the edge runtime of Vercel. A promise that is pending at that time never settles. In these
 * runtimes a request must await the calls that it starts, and must not await a promise of another request.
 */
export const cancelsAtEnd = () => 'WebSocketPair' in globalThis || 'EdgeRuntime' in globalThis

/** Maximum size of an answer in bytes. A key set has a few KiB. */
const MAX_BYTES = 1024 * 1024
/** Maximum length of a form with a token, in characters. A token has at most 15,360 characters (jws.ts). */
export const MAX_FORM = 16_384

/**
 * Sends a request and reads at most 1 MiB. Redirects are not followed, because a redirect could send a secret
 * to another server. The timeout is in milliseconds and includes the time for reading the body. `body` is
 * undefined when the answer is not JSON or is too long. Errors of `fetch` and of a connection that breaks are
 * thrown unchanged.
 */
export async function fetchJson(
  fetch: Fetch,
  url: string,
  timeout: number,
  init: RequestInit = {},
): Promise<{ response: Response; body: unknown }> {
  const response = await fetch(url, {
    ...init,
    headers: { accept: 'application/json', ...init.headers },
    // Cloudflare Workers do not support the value `error`. With `manual` the answer has the status of the
    // redirect, and the callers refuse that status.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeout),
  })
  return { response, body: parseJson(await readText(response, MAX_BYTES)) }
}

function parseJson(text = ''): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns a body of at most `limit` bytes. Returns undefined when the body is longer. */
export async function readText({ body }: Request | Response, limit: number): Promise<string | undefined> {
  const reader = body?.getReader()
  if (!reader) return ''
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > limit) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
}
