import type { Context } from '#src/context.ts'
import { assetUrl } from '#src/pages/assets.ts'
import { sheetsOf } from '#src/pages/render.ts'
import { defaultBrand } from '#src/pages/themes.ts'
import { HOME } from './home/page.ts'

const GUIDE = '/guide'

/** True for the path of a guide page. */
export const isGuide = (pathname: string): boolean => pathname === GUIDE || pathname.startsWith(`${GUIDE}/`)

/**
 * Returns a page of the guide. For an unknown path, returns the table of contents with status 404. The first
 * request imports the guide.
 */
export const guidePage = async (context: Context, pathname: string): Promise<Response> => {
  const [{ findGuidePage: pageOf }, { guideDocument }] = await Promise.all([
    import('#src/guide/pages.ts'),
    import('#src/guide/html.ts'),
  ])
  const subject = pathname.slice(GUIDE.length + 1)
  const page = pageOf(subject)
  const sheets = [...sheetsOf(defaultBrand(context)), assetUrl('guide.css') ?? '']
  return new Response(guideDocument(page, { sheets, icon: assetUrl('gate.svg') ?? '', home: HOME }), {
    status: page || subject === '' ? 200 : 404,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-security-policy':
        "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  })
}
