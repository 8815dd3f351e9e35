import type { IncomingMessage } from 'node:http'

/** The part of `fetch` that the controls use. */
export type ControlCall = (
  url: string,
  init: { method?: string; headers: Record<string, string>; body?: string; signal?: AbortSignal },
) => Promise<Response>

/**
 * Returns `fetch` for a server whose certificate is in a file. Node's `fetch` has no option for a
 * certificate, so `node:https` makes the call. Deno and Bun have this module too.
 */
export const fetchTrusting =
  (ca_file: string): ControlCall =>
  async (url, { body, ...init }) => {
    const [{ request }, { readFile }, { Readable }] = await Promise.all([
      import('node:https'),
      import('node:fs/promises'),
      import('node:stream'),
    ])
    const ca = await readFile(ca_file)
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, { ...init, ca }, resolve)
        .on('error', reject)
        .end(body)
    })
    const { statusCode: status = 0 } = message
    const content = Readable.toWeb(message) as unknown as ReadableStream
    return new Response(status === 204 ? null : content, { status })
  }
