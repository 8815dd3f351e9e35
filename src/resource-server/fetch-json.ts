/** The subset of `fetch` used by this package. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

const MAX_BYTES = 1024 * 1024

/**
 * Sends a request with a timeout in ms (body included), without redirects, and reads at most 1 MiB. `body` is
 * undefined when the answer is not JSON or too long. Errors of `fetch` pass through.
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
    // `error` would be clearer, but Cloudflare Workers do not support it.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeout),
  })
  return { response, body: await readJson(response) }
}

async function readJson(response: Response): Promise<unknown> {
  const reader = response.body?.getReader()
  if (!reader) return undefined
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) break
    bytes += value.byteLength
    if (bytes > MAX_BYTES) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
  try {
    return JSON.parse(text + decoder.decode())
  } catch {
    return undefined
  }
}
