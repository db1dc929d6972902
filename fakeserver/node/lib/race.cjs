'use strict'
// `race`: the program's sweep over functions of this process, which it starts and stops by lines of JSON.
const { spawn } = require('node:child_process')
const { createHash } = require('node:crypto')
const readline = require('node:readline')
// Taken before a test replaces the timers among the globals.
const { setTimeout } = require('node:timers')
const { inspect } = require('node:util')
const { Life } = require('./life.cjs')
const { understood } = require('./options.cjs')
const { programPath } = require('./program.cjs')

// A function whose connections were cut may notice and come to its end. A client that waits until it can connect again never does.
const GRACE_MS = 20
// What the dead say would depend on how their client takes it.
const DEAD = { status: 1, output: '' }
const OUTPUT_CHARACTERS_MAX = 65_536
const STDERR_CHARACTERS_MAX = 16_384
const EVERY_DETAIL = { depth: Infinity, sorted: true, breakLength: Infinity, maxArrayLength: Infinity, maxStringLength: Infinity }

// What a race rejects with when there are findings: its message is the report as text.
class RaceError extends Error {
  constructor(report) {
    super(`${report.text.trimEnd()}\n\nOne of these alone: race(a, b, { ..., replay: '${report.findings[0]?.schedule}' })`)
    this.name = 'RaceError'
    // Runners print an error's own properties, and the text has said it all.
    Object.defineProperty(this, 'report', { value: report })
  }
}

// Runs `a` and `b` in every order with one preemption. Settles when the sweep is over.
function race(a, b, options) {
  // The place in the test that a runner shows beside the report: in later turns the stack does not lead there.
  const site = {}
  Error.captureStackTrace(site, race)
  return new Promise((resolve, reject) => {
    const { roles, args, check, signal } = understood(a, b, options)
    const settle = (error, report) => {
      if (!error && check && report.findings.length > 0) error = new RaceError(report)
      if (!error) return resolve(report)
      if (error === signal?.reason) return reject(error)
      error.stack = `${error.name}: ${error.message}\n${site.stack.split('\n').slice(1).join('\n')}`
      return reject(error)
    }
    new Sweep(roles, settle).start(programPath(), args, signal)
  })
}

// The URL of the run in which it is asked for.
Object.defineProperty(race, 'url', { enumerable: true, get: () => Life.current().url })

// A stand-in for a client that the code under test keeps for good: in each run it is another one.
race.client = (factory) =>
  new Proxy(
    {},
    {
      get(_, name) {
        const client = Life.current().clientOf(factory)
        const value = Reflect.get(client, name, client)
        return typeof value === 'function' ? value.bind(client) : value
      },
      set: (_, name, value) => Reflect.set(Life.current().clientOf(factory), name, value),
      has: (_, name) => name in Life.current().clientOf(factory),
    },
  )

class Sweep {
  #roles
  #settle
  #child
  // The runs that have not been answered, by role.
  #open = new Map()
  #succeeded = new Set()
  #lastErrors = new Map()
  #report = null
  #failure = null
  #stderr = ''

  constructor(roles, settle) {
    this.#roles = roles
    this.#settle = settle
  }

  start(program, args, signal) {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true })
    this.#child = child
    const aborted = () => this.#fail(signal.reason)
    if (signal?.aborted) aborted()
    signal?.addEventListener('abort', aborted, { once: true })
    child.on('error', (error) => this.#fail(error))
    child.stdin.on('error', () => {}) // It has ended, and its exit says more.
    child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARACTERS_MAX)
    })
    readline.createInterface({ input: child.stdout }).on('line', (line) => this.#heed(line))
    child.on('close', (code, by) => {
      signal?.removeEventListener('abort', aborted)
      this.#close(code, by)
    })
  }

  #heed(line) {
    try {
      const message = JSON.parse(line)
      if (message.do === 'run') this.#run(message)
      else if (message.do === 'stop') this.#stop(message)
      else if (message.do === 'report') this.#report = { ...message.report, text: message.text }
      else throw new Error(`an unknown request: ${line}`)
    } catch (cause) {
      this.#fail(new Error(`the program was not understood: ${cause.message}`, { cause }))
    }
  }

  // Not awaited by anybody: the program may start the other role while this one runs.
  async #run({ role, run, url }) {
    const life = new Life(url)
    const work = this.#roles.get(role)
    this.#open.set(role, { run, life })
    const answer = { status: 0, output: '' }
    try {
      answer.output = shown(await life.live(() => work(url, { role, signal: life.signal })))
      if (!life.signal.aborted) this.#succeeded.add(role)
    } catch (error) {
      answer.status = 1
      answer.output = thrown(error)
      if (!life.signal.aborted) this.#lastErrors.set(role, error)
    }
    this.#ended(role, run, life.signal.aborted ? DEAD : answer)
  }

  #stop({ role, run }) {
    const open = this.#open.get(role)
    if (open?.run !== run) return // Its answer and this request met on their way.
    open.life.stop()
    setTimeout(() => this.#ended(role, run, DEAD), GRACE_MS)
  }

  #ended(role, run, answer) {
    const open = this.#open.get(role)
    if (open?.run !== run) return
    this.#open.delete(role)
    open.life.end()
    this.#child.stdin.write(`${JSON.stringify({ ended: role, run, ...answer })}\n`)
  }

  #fail(error) {
    this.#failure ??= error
    this.#child.kill()
  }

  #close(code, by) {
    for (const { life } of this.#open.values()) {
      life.stop()
      life.end()
    }
    this.#open.clear()
    if (this.#failure) return this.#settle(this.#failure)
    if (!this.#report || code === null || code > 1) return this.#settle(this.#ranOut(code, by))
    const idle = ['a', 'b'].find((role) => this.#lastErrors.has(role) && !this.#succeeded.has(role))
    const shows = !idle || this.#report.findings.length > 0
    return shows ? this.#settle(null, this.#report) : this.#settle(failedAlways(idle, this.#lastErrors.get(idle)))
  }

  #ranOut(code, by) {
    const said = this.#stderr.trim() || `fakeserver sweep ended ${by ? `by ${by}` : `with status ${code}`} and without a report`
    const [failed] = [...this.#lastErrors].filter(([role]) => !this.#succeeded.has(role))
    if (!failed) return new Error(said)
    const [role, cause] = failed
    const text = thrown(cause)
    return new Error(said.includes(text) ? said : `${said}\n\`${role}\` failed: ${text}`, { cause })
  }
}

function failedAlways(role, cause) {
  const text = `\`${role}\` failed in every run, so the race shows nothing: ${thrown(cause)}`
  return new Error(`${text}\nIf that is what it has to do, let it return its error.`, { cause })
}

function shown(value) {
  const text = typeof value === 'string' ? value : inspect(value, EVERY_DETAIL)
  if (text.length <= OUTPUT_CHARACTERS_MAX) return text
  const digest = createHash('sha256').update(text).digest('hex')
  return `${text.slice(0, OUTPUT_CHARACTERS_MAX)}... (${text.length} characters, SHA-256 ${digest})`
}

function thrown(error) {
  return typeof error?.message === 'string' ? shown(`${error.name}: ${error.message}`) : shown(error)
}

module.exports = { RaceError, race }
