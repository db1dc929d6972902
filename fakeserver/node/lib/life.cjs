'use strict'
// What stands in for a process around a function: when a life is over, so are its connections, and it gets no new ones.
//
// A sweep runs each function many times against the same address, and lets it die amid a command. A process would be gone then. A
// function cannot be killed, and the client that it opened would connect again as soon as the next run's server listens there.
const { AsyncLocalStorage } = require('node:async_hooks')
const net = require('node:net')

// Whose life it is that calls. One for the process: Jest loads this file anew for each file of tests, and node:net once.
const LIVES = Symbol.for('fakeserver.lives')
const lives = net.Socket.prototype.connect[LIVES] ?? watchConnections()

class Life {
  #sockets = new Set()
  #abort = new AbortController()
  #over = false
  #clients = new Map()

  constructor(url) {
    this.url = url
  }

  // The life in which this is called.
  static current() {
    const life = lives.getStore()
    if (!life) throw new Error('no function of a race is running here')
    return life
  }

  // The client that this life has of a maker.
  clientOf(factory) {
    if (!this.#clients.has(factory)) this.#clients.set(factory, factory(this.url))
    return this.#clients.get(factory)
  }

  // Aborted when the life ends before its function does.
  get signal() {
    return this.#abort.signal
  }

  // What `work` gives; all connections that it opens, then and later, belong to this life.
  live(work) {
    return lives.run(this, async () => work())
  }

  // From now on nothing connects; what is connected stays, so that the function may still hear that it was cut off.
  stop() {
    this.#over = true
    this.#abort.abort(new Error('this run was stopped by the sweep'))
  }

  // Closes the connections, and tells the client only where it has asked for that: another one would try to connect again.
  end() {
    this.#over = true
    for (const socket of this.#sockets) {
      if (!socket.writableEnded) socket.removeAllListeners()
      socket.on('error', ignore)
      socket.destroy()
    }
    this.#sockets.clear()
    this.#clients.clear()
  }

  // Whether a socket may connect. If so, it is this life's from now on.
  admits(socket) {
    if (this.#over) return false
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return true
  }
}

function ignore() {}

// Every connection that a client opens comes by here, and in the context of whatever led to it, later attempts included.
function watchConnections() {
  const storage = new AsyncLocalStorage()
  const { connect } = net.Socket.prototype
  function watchedConnect(...args) {
    const life = storage.getStore()
    if (!life || life.admits(this)) return connect.apply(this, args)
    // It never comes about. A failure would make the client try again, a handle or a timer keep this process from its end.
    this.connecting = true
    this.setTimeout = () => this
    return this
  }
  watchedConnect[LIVES] = storage
  net.Socket.prototype.connect = watchedConnect
  return storage
}

module.exports = { Life }
