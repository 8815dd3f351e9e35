import { hash } from 'node:crypto'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import type { Json } from './components.ts'

type Named = Record<string, Json>

/** The API reference as an HTML document. */
export interface ReferencePage {
  html: string
  /** Content-Security-Policy. */
  policy: string
}

const style = Object.values(embed('templates', ['themes/default.css', 'reference.css'])).join('\n')
const text = Bun.escapeHTML

/** Escapes a text and renders its Markdown code spans as `<code>`. */
const prose = (about: unknown): string => text(String(about ?? '')).replace(/`([^`]+)`/g, '<code>$1</code>')

const nameOf = (part: Json): string => String(part.$ref).split('/').at(-1) ?? ''

const link = (name: string): string => `<a href="#${name}">${name}</a>`

/** Describes the type of a schema in a few words; named schemas are links. */
const typeOf = (schema: Json): string => {
  if (schema.$ref) return link(nameOf(schema))
  const options = (schema.anyOf ?? schema.oneOf) as Json[] | undefined
  if (options) return options.map(typeOf).join(' or ')
  if (schema.const !== undefined) return `<code>${text(JSON.stringify(schema.const))}</code>`
  if (Array.isArray(schema.enum))
    return schema.enum.map(value => `<code>${text(JSON.stringify(value))}</code>`).join(' ')
  if (schema.type === 'array') return `list of ${typeOf((schema.items ?? {}) as Json)}`
  return text([schema.type ?? 'any'].flat().join(' or '))
}

/** Lists the bounds of a schema, its format, pattern and default. */
const boundsOf = (schema: Json): string =>
  ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'format', 'pattern', 'default']
    .filter(name => schema[name] !== undefined)
    .map(name => `${name} <code>${text(JSON.stringify(schema[name]))}</code>`)
    .join(', ')

const term = (name: string, kind: string, about: string, schema: Json = {}): string => {
  const bounds = boundsOf(schema)
  return `<div><dt><code>${text(name)}</code> <small>${kind}</small></dt><dd>${about}${about && '<br>'}${typeOf(schema)}${bounds && ` (${bounds})`}</dd></div>`
}

const fields = ({ properties = {}, required = [], oneOf, enum: values }: Json): string => {
  if (oneOf) return `<p>One of ${(oneOf as Json[]).map(typeOf).join(', ')}.</p>`
  if (values) return `<p>${typeOf({ enum: values })}</p>`
  const rows = Object.entries(properties as Named).map(([name, schema]) => {
    const kind = (required as string[]).includes(name) ? 'required' : schema.readOnly ? 'read-only' : ''
    return term(name, kind, prose(schema.description), schema)
  })
  return `<dl>${rows.join('')}</dl>`
}

/**
 * Renders the OpenAPI document as one page without scripts. The content security policy allows only the
 * style and the icon of the page. Its directive `sandbox` gives the page an opaque origin, so the page can
 * read no cookie and call no server. https://html.spec.whatwg.org/multipage/browsers.html#sandboxing
 */
export const referencePage = (document: Json): ReferencePage => {
  const { info, paths, tags, components } = document as Record<string, Json>
  const { schemas, examples, parameters, responses } = components as Record<string, Named>

  const sample = (content: Json | undefined): string => {
    const { schema, examples: names } = (content?.['application/json'] ?? {}) as Record<string, Json>
    if (!schema) return ''
    const values = Object.keys(names ?? {}).map(
      name => `<pre tabindex="0">${text(JSON.stringify(examples?.[name]?.value, null, 2))}</pre>`,
    )
    return `<p>${link(nameOf(schema))}</p>${values.join('')}`
  }

  const operations = Object.entries(paths as Record<string, Named>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

  const article = ({ path, method, operation }: (typeof operations)[number]): string => {
    const given = ((operation.parameters ?? []) as Json[]).map(part =>
      part.$ref ? (parameters?.[nameOf(part)] ?? {}) : part,
    )
    const rows = given.map(part =>
      term(
        String(part.name),
        `${part.in}${part.required ? ', required' : ''}`,
        prose(part.description),
        part.schema as Json,
      ),
    )
    const answers = Object.entries(operation.responses as Named)
    const [[status, success] = ['', {}]] = answers
    const refusals = answers
      .slice(1)
      .map(
        ([code, part]) =>
          `<div><dt><code>${code}</code></dt><dd>${prose(part.description ?? responses?.[nameOf(part)]?.description)}</dd></div>`,
      )
    const body = operation.requestBody as Json | undefined
    return `<article id="${operation.operationId}">
<h3>${prose(operation.summary)}</h3>
<p><span class="method ${method}">${method.toUpperCase()}</span> <code>${text(path)}</code></p>
<p><code>${operation.operationId}</code>. ${prose(operation.description)}</p>
${rows.length > 0 ? `<h4>Parameters</h4><dl>${rows.join('')}</dl>` : ''}
${body ? `<h4>Body</h4>${sample(body.content as Json)}` : ''}
<h4>${status}: ${prose((success as Json).description)}</h4>${sample((success as Json).content as Json)}
<details><summary>Refusals</summary><dl>${refusals.join('')}</dl><p>${link('Error')}</p></details>
</article>`
  }

  // Tags such as `identity-providers` are for programs, so the page shows a title in their place.
  const titleOf = (tag: string) => text(tag.charAt(0).toUpperCase() + tag.slice(1).replaceAll('-', ' '))
  const sections = (tags as unknown as Json[]).map(({ name, description }) => {
    const own = operations.filter(({ operation }) => (operation.tags as string[]).includes(String(name)))
    return {
      items: `<h2>${titleOf(String(name))}</h2><ul>${own.map(({ operation }) => `<li><a href="#${operation.operationId}">${prose(operation.operationId)}</a></li>`).join('')}</ul>`,
      articles: `<h2 id="tag-${name}">${titleOf(String(name))}</h2><p>${prose(description)}</p>${own.map(article).join('\n')}`,
    }
  })
  const named = Object.entries(schemas ?? {}).sort(([a], [b]) => a.localeCompare(b, 'en'))
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${text(String(info?.title))}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<nav aria-label="Contents"><details><summary>Contents</summary>
${sections.map(({ items }) => items).join('\n')}
<h2>Schemas</h2><ul>${named.map(([name]) => `<li>${link(name)}</li>`).join('')}</ul>
</details></nav>
<main>
<h1>${text(String(info?.title))}</h1>
<p>Version ${text(String(info?.version))}. Also available as an <a href="openapi.json">OpenAPI document</a>.</p>
${String(info?.description)
  .split('\n\n')
  .map(part => `<p>${prose(part)}</p>`)
  .join('')}
${sections.map(({ articles }) => articles).join('\n')}
<h2 id="schemas">Schemas</h2>
${named.map(([name, schema]) => `<article id="${name}"><h3>${name}</h3><p>${prose(schema.description)}</p>${fields(schema)}</article>`).join('\n')}
</main>
</body>
</html>
`
  const policy = `sandbox; default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return { html, policy }
}
