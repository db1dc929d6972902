'use strict'
// The double: a server of its own for a test, as a child process that ends with this one.
const { spawn } = require('node:child_process')
const readline = require('node:readline')
const { Connection } = require('./connection.cjs')
const { programPath } = require('./program.cjs')

const LOOPBACK = '127.0.0.1'
const STDERR_CHARACTERS_MAX = 16_384
const OPTIONS = ['port', 'host', 'password', 'seed', 'clock', 'enableDebugCommand']

// A running server with an address of its own.
async function startServer(options) {
  const server = new Server(options)
  await server.start()
  return server
}

// One server for a file of tests: started before them, emptied before each, ended after them. `hooks` are the framework's: its
// module or its globals.
function useServer(hooks = globalThis, options = {}) {
  const before = hooks.beforeAll ?? hooks.before
  const after = hooks.afterAll ?? hooks.after
  if (![before, hooks.beforeEach, after].every((hook) => typeof hook === 'function')) {
    throw new TypeError('useServer needs the hooks of a test framework: useServer(test) with node:test, useServer({ beforeAll, beforeEach, afterAll }) with others')
  }
  const server = new Server(options)
  before(() => server.start())
  hooks.beforeEach(() => server.renew())
  after(() => server.stop())
  return server
}

class Server {
  #options
  #child = null
  #exited = null
  #stderr = ''
  #address = null
  // A connection that no fault can hit, since it sends nothing but FAKE.
  #steering = null
  #plain = null

  constructor(options = {}) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
    if (unknown) throw new TypeError(`there is no option \`${unknown}\` of a server, but ${OPTIONS.join(', ')}`)
    this.#options = options
    this.clock = Object.freeze({
      freeze: (milliseconds) => this.#steer('CLOCK', 'FREEZE', ...(milliseconds === undefined ? [] : [Number(milliseconds)])),
      advance: (milliseconds) => this.#steer('CLOCK', 'ADVANCE', milliseconds),
      real: () => this.#steer('CLOCK', 'REAL'),
      now: () => this.#steer('CLOCK', 'NOW'),
    })
  }

  async start() {
    const child = spawn(programPath(), this.#args(), { stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true })
    this.#child = child
    this.#exited = new Promise((resolve) => child.once('close', resolve))
    child.stdin.on('error', () => {})
    child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARACTERS_MAX)
    })
    this.#address = await this.#ready(child)
    this.#steering = await Connection.open(this.#address)
    // A test that forgets to stop its server ends nevertheless, and the server with it.
    this.#handles().forEach((handle) => handle.unref())
  }

  #handles() {
    const { stdin, stdout, stderr } = this.#child
    return [this.#child, stdin, stdout, stderr]
  }

  #args() {
    const { port = 0, host = LOOPBACK, password, seed, clock, enableDebugCommand } = this.#options
    const args = ['--port', port, '--bind', host, '--admin', '--parent-stdin']
    if (password !== undefined) args.push('--password', password)
    if (seed !== undefined) args.push('--seed', seed)
    if (clock !== undefined) args.push('--frozen-clock', Number(clock))
    if (enableDebugCommand) args.push('--enable-debug-command')
    return args.map(String)
  }

  #ready(child) {
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => reject(new Error(`fakeserver ended ${signal ? `by ${signal}` : `with status ${code}`} at its start: ${this.#stderr.trim()}`)))
      readline.createInterface({ input: child.stdout }).once('line', (line) => {
        const port = /^Ready: .*:(\d+)$/.exec(line)?.[1]
        if (!port) reject(new Error(`fakeserver said "${line}" at its start`))
        const { host = LOOPBACK, password } = this.#options
        resolve({ host, port: Number(port), password })
      })
    })
  }

  #running() {
    if (!this.#address) throw new Error('the server is not running: with useServer it is from the first test to the last')
    return this.#address
  }

  get host() {
    return this.#running().host
  }

  get port() {
    return this.#running().port
  }

  get url() {
    const { host, port, password } = this.#running()
    const credentials = password === undefined ? '' : `:${encodeURIComponent(password)}@`
    return `redis://${credentials}${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  async #steer(...words) {
    this.#running()
    return this.#steering.call(['FAKE', ...words])
  }

  async command(...words) {
    const address = this.#running()
    if (!this.#plain?.isOpen) this.#plain = await Connection.open(address)
    return this.#plain.call(words)
  }

  async flush() {
    await this.command('FLUSHALL')
  }

  async reset() {
    await this.#steer('RESET')
    await this.#wind()
  }

  // Between two tests: what `reset` does, but connections and settings stay.
  async renew() {
    await this.clearFaults()
    await this.flush()
    await this.#wind()
  }

  async #wind() {
    const { clock } = this.#options
    await (clock === undefined ? this.clock.real() : this.clock.freeze(clock))
  }

  async fail(command, { nth, always, error, drop, delay } = {}) {
    const faults = [
      error !== undefined && ['ERROR', error],
      drop === 'before' && ['DROP-BEFORE'],
      drop === 'after' && ['DROP-AFTER'],
      delay !== undefined && ['DELAY', delay],
    ].filter(Boolean)
    if (faults.length !== 1) throw new TypeError("fail: give one of `error: 'text'`, `drop: 'before'`, `drop: 'after'`, `delay: milliseconds`")
    if (nth !== undefined && always) throw new TypeError('fail: `nth` and `always` exclude each other')
    const when = always ? ['ALWAYS'] : nth === undefined ? [] : ['NTH', nth]
    await this.#steer('FAIL', command, ...when, ...faults[0])
  }

  async clearFaults() {
    return this.#steer('FAIL', 'CLEAR')
  }

  async dump() {
    return this.#steer('DUMP')
  }

  async stop() {
    if (!this.#child) return
    this.#address = null
    this.#steering?.close()
    this.#plain?.close()
    this.#handles().forEach((handle) => handle.ref())
    this.#child.kill()
    await this.#exited
  }

  async [Symbol.asyncDispose ?? Symbol('asyncDispose')]() {
    await this.stop()
  }
}

module.exports = { startServer, useServer }
