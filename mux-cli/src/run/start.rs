//! From a plan to a loop that runs: targets, their configuration, limits, streams. Whatever is wrong with all of it
//! is said here, before anything has been connected to.

use std::collections::BTreeSet;
use std::io;

use bytes::Bytes;
use mux_core::Driver;
use mux_ssh::config::{ConfigError, HostConfig, Origin, Problem};
use rustix::process::Signal;

use super::config::{self, Configuration};
use super::early::Early;
use super::engine::Engine;
use super::fallback::{self, Fallback};
use super::far::Far;
use super::flights::Flights;
use super::forwarding;
use super::hosts::Hosts;
use super::input::{Input, Opened};
use super::jumps::{Jumps, NoWay};
use super::learning::Learning;
use super::locals::Locals;
use super::net::Net;
use super::outside::Outside;
use super::recording::Recording;
use super::settings::{self, Here, Settings, Work};
use super::stop::Stop;
use super::task::Done;
use super::wire::Wire;
use super::{complain, directories, limits, print, select, unsupported};
use crate::exit;
use crate::hub::{Event, Failure, Hub, Level, Outcome, Request, RequestId, Stage, Status};
use crate::output::{Facts, Options, Output};
use crate::plan::{Action, Plan, Transport};
use crate::pool::Pool;
use crate::preferences::{Places, Preferences};
use crate::state::State;
use crate::targets::{self, Part, Target};
use crate::writer::{Report, Reports, Streams, Writer};

/// Why targets go through the system's `ssh`, where that was asked for.
const BY_OPENSSH: &str = "--transport openssh";

/// A target on its way into the hub, or why it can't get there.
enum Ready {
    Ssh(Box<settings::Prepared>),
    Local(Box<Request>),
    /// With what is to be said about it.
    OpenSsh(Box<Request>, Option<String>),
    Unusable(Stage, String),
}

/// Carries out a plan and returns the exit status.
pub(super) fn start(plan: &Plan) -> u8 {
    match prepare(plan) {
        Ok(status) => status,
        Err(text) => {
            complain(&text);
            exit::USAGE
        }
    }
}

fn prepare(plan: &Plan) -> Result<u8, String> {
    let preferences = Places::of_process().read().map_err(|error| error.to_string())?;
    let mut configuration = Configuration::new(&plan.connection);
    let selection = select::targets(plan, &mut configuration)?;
    let targets = selection.targets.into_vec();
    let through = targets::part(BY_OPENSSH, &plan.connection.through_openssh, &targets);
    let through = through.map_err(|error| error.to_string())?;
    let idle = selection.idle_exclusions.iter();
    let warnings = idle
        .map(|text| format!("-x {text}: leaves nothing out"))
        .chain(
            through
                .idle
                .iter()
                .map(|text| format!("{BY_OPENSSH}={text}: no target of this run")),
        )
        .collect();
    let (command, learning) = match &plan.action {
        Action::ListHosts => return Ok(print(&list(&targets))),
        Action::Run(command) => (Bytes::copy_from_slice(command), None),
        Action::LearnHosts(learn) => (Bytes::new(), Some(Learning::new(learn)?)),
    };
    configuration.set_command(&command);
    if plan.connection.transport != Transport::Local {
        configuration.foresee(&targets);
    }
    let ready = resolve(plan, &mut configuration, (&targets, &through), &command)?;
    directories::prepare(&plan.output.save)?;
    let opened = plan.stdin.as_ref().map(Opened::open).transpose()?;
    match run(
        plan,
        targets,
        ready,
        (opened, learning, &preferences),
        warnings,
        (configuration.signals(), &configuration.default_known_hosts()),
    ) {
        Ok(status) => Ok(status),
        Err(text) => {
            complain(&text);
            Ok(exit::INTERNAL)
        }
    }
}

fn list(targets: &[Target]) -> String {
    targets
        .iter()
        .map(|target| format!("{}\n", target.text))
        .collect()
}

/// The requests of all targets. What is wrong with the command line or with every target is an error of the run.
fn resolve(
    plan: &Plan,
    configuration: &mut Configuration,
    (targets, through): (&[Target], &Part),
    command: &Bytes,
) -> Result<(Vec<Ready>, Vec<settings::Prepared>), String> {
    forwarding::check(&plan.connection, targets.len())?;
    let mut ways = Ways {
        settings: Settings::new(targets.len()),
        jumps: Jumps::new(plan, targets.len()),
        ssh: Fallback::new(plan, targets.len()),
        plan,
    };
    let mut all = Vec::with_capacity(targets.len());
    for ((id, target), chosen_by) in (0..).map(RequestId).zip(targets).zip(&through.chosen_by) {
        let work = Work::new(command, plan, (id, &target.host), targets.len());
        let request = (id, target, work);
        all.push(match (plan.connection.transport, chosen_by) {
            (Transport::Local, _) => {
                let (_, _, work) = request;
                Ready::Local(Box::new(settings::local(id, plan, &target.host, work)))
            }
            (Transport::OpenSsh, _) => ways.by_openssh(configuration, request, BY_OPENSSH.to_owned())?,
            (Transport::Ssh, Some(set)) => {
                ways.by_openssh(configuration, request, format!("{BY_OPENSSH}={set}"))?
            }
            (Transport::Ssh, None) => ways.natively(configuration, request)?,
        });
    }
    let Ways { jumps, .. } = ways;
    let reasons: Option<BTreeSet<&str>> = all.iter().map(Ready::unusable).collect();
    match reasons {
        Some(reasons) if !reasons.is_empty() => Err(reasons.into_iter().collect::<Vec<_>>().join("\nmux: ")),
        Some(_) | None => Ok((all, jumps.into_hops())),
    }
}

/// What requests of all targets are made with.
struct Ways<'a> {
    plan: &'a Plan,
    settings: Settings,
    jumps: Jumps<'a>,
    ssh: Fallback<'a>,
}

impl Ways<'_> {
    /// Through the system's `ssh`, for this reason.
    fn by_openssh(
        &mut self,
        configuration: &mut Configuration,
        (id, target, work): (RequestId, &Target, Work),
        reason: String,
    ) -> Result<Ready, String> {
        match configuration.host(target) {
            Err(error) if is_global(&error) => Err(error.to_string()),
            Err(error) if !fallback::can_take(&error) && self.ssh.refuses(&error) => {
                Ok(Ready::Unusable(Stage::Dns, error.to_string()))
            }
            config => {
                let config = config.ok();
                let request = self.ssh.request(id, target, work, config.as_ref(), reason);
                let warning = config.and_then(|config| self.ssh.warning(&config));
                Ok(Ready::of(request, warning))
            }
        }
    }

    /// By our own means, unless the configuration of the target asks for what only `ssh` can do.
    fn natively(
        &mut self,
        configuration: &mut Configuration,
        (id, target, work): (RequestId, &Target, Work),
    ) -> Result<Ready, String> {
        let config = match configuration.host(target) {
            Ok(config) => config,
            Err(error) if is_global(&error) => return Err(error.to_string()),
            Err(error) if fallback::can_take(&error) => {
                let request = self.ssh.request(id, target, work, None, error.to_string());
                return Ok(Ready::of(request, None));
            }
            Err(error) => return Ok(Ready::Unusable(Stage::Dns, error.to_string())),
        };
        let other_way = self.ssh.by_ticket(target, &work, &config);
        let request = (id, self.plan, work.clone());
        let (settings, jumps) = (&mut self.settings, &mut self.jumps);
        match prepared(settings, jumps, request, configuration, config) {
            Ok(mut prepared) => {
                prepared.other_way = other_way;
                Ok(Ready::Ssh(Box::new(prepared)))
            }
            Err(NoWay::Wrong(text)) => Ok(Ready::Unusable(Stage::Dns, text)),
            // Seldom enough to be resolved once more.
            Err(NoWay::Unsupported(text)) => self.by_openssh(configuration, (id, target, work), text),
        }
    }
}

/// A target with the way to it.
fn prepared(
    settings: &mut Settings,
    jumps: &mut Jumps<'_>,
    (id, plan, work): (RequestId, &Plan, Work),
    configuration: &mut Configuration,
    mut config: HostConfig,
) -> Result<settings::Prepared, NoWay> {
    let refused = match plan.action {
        Action::LearnHosts(_) => unsupported::refuse_way(&config),
        Action::Run(_) | Action::ListHosts => unsupported::refuse(&config),
    };
    refused.map_err(NoWay::Unsupported)?;
    let (route, way) = jumps.way(&mut config)?;
    let here = Here {
        variables: configuration.variables(&config),
        source: configuration.source(&config, &route).map_err(NoWay::Wrong)?,
    };
    let mut prepared = settings
        .prepare(id, plan, work, config, here)
        .map_err(NoWay::Unsupported)?;
    prepared.request.route = route;
    prepared.way = way;
    Ok(prepared)
}

/// A file that can't be read, or an option, concerns every target.
fn is_global(error: &ConfigError) -> bool {
    matches!(error.problem, Problem::UnreadableInclude { .. })
        || match &error.origin {
            Origin::CommandLine | Origin::Default => false,
            Origin::File { line, .. } => *line == 0,
        }
}

impl Ready {
    fn of(request: Result<Request, String>, warning: Option<String>) -> Self {
        match request {
            Ok(request) => Self::OpenSsh(Box::new(request), warning),
            // No name has been looked up, and none is wrong.
            Err(text) => Self::Unusable(Stage::Tcp, text),
        }
    }

    /// Whether the daemon could carry it out.
    fn suits_far(&self) -> bool {
        match self {
            Self::Ssh(prepared) => prepared.other_way.is_none() && Far::suits(&prepared.request),
            Self::Local(_) | Self::OpenSsh(..) | Self::Unusable(..) => false,
        }
    }

    fn unusable(&self) -> Option<&str> {
        match self {
            Self::Unusable(_, reason) => Some(reason),
            Self::Ssh(_) | Self::Local(_) | Self::OpenSsh(..) => None,
        }
    }
}

/// Reports of the writer arrive in the loop's mailbox.
struct ToLoop(mux_core::Sender<Report>);

impl Reports for ToLoop {
    fn report(&self, report: Report) {
        // A loop that is gone has nobody left to tell.
        let _ = self.0.send(report);
    }
}

fn run(
    plan: &Plan,
    targets: Vec<Target>,
    (ready, hops): (Vec<Ready>, Vec<settings::Prepared>),
    (opened, learning, preferences): (Option<Opened>, Option<Learning>, &Preferences),
    warnings: Vec<String>,
    (early, default_known_hosts): (Option<Early>, &str),
) -> Result<u8, String> {
    let descriptors = limits::descriptors(plan, targets.len(), hops.len());
    let set_up = |error| limits::missing("set up the event loop", &error);
    let mut driver = Driver::<Wire>::new().map_err(set_up)?;
    let now = driver.turn(Some(std::time::Duration::ZERO)).map_err(set_up)?;
    let streams =
        Streams::of_process().map_err(|error| limits::missing("duplicate the standard streams", &error))?;
    let on_terminal = streams.stderr_is_terminal;
    let options = options(plan, &facts(&streams), opened.as_ref())?;
    listen(&mut driver, on_terminal).map_err(|error| limits::missing("listen for signals", &error))?;
    // Not sooner: without anybody who listens they would be lost.
    drop(early);
    let output = Output::new(now, options, targets.clone());
    let (reports, mailbox) = driver.mailbox();
    let writer = Writer::start(streams, ToLoop(reports))
        .map_err(|error| limits::missing("start the thread that writes output", &error))?;
    let outside = outside(
        plan,
        &driver,
        (opened, learning),
        &descriptors,
        targets.len(),
        default_known_hosts,
    )
    .map_err(|error| limits::missing("start the thread that reads input", &error))?;
    let net = Net::new(driver, Locals::new(descriptors.before), descriptors.links);
    let mut hub = Hub::new(plan.fanout, ready.len());
    hub.limit_at_once(descriptors.at_once);
    let mut engine = Engine::new(
        net,
        hub,
        outside,
        output,
        (writer, mailbox),
        Stop::new(on_terminal),
        targets,
    );
    let suitable = ready.iter().filter(|ready| ready.suits_far()).count();
    engine.look_for_daemon(now, plan, (suitable, ready.len()));
    for text in warnings.into_iter().chain(descriptors.warning()) {
        engine.say(Level::Warning, text);
    }
    engine.watch_flights(Flights::new(plan.verbose));
    if let Some(recording) = Recording::begin(&preferences.audit, now, plan, &engine.targets)? {
        engine.record(recording);
    }
    submit(now, &mut engine, ready, hops);
    engine
        .run(plan.exit)
        .map_err(|error| limits::missing("go on", &error))
}

/// How the output looks. Where a person types the commands' input, no line about progress comes between.
fn options(plan: &Plan, facts: &Facts, opened: Option<&Opened>) -> Result<Options, String> {
    let directory = directory().map_err(|error| limits::missing("name a temporary directory", &error))?;
    let options = Options::new(&plan.output, plan.verbose, facts, directory);
    Ok(match opened.is_some_and(Opened::is_terminal) {
        true => options.without_progress(),
        false => options,
    })
}

/// Where the output goes.
fn facts(streams: &Streams) -> Facts {
    let on_terminal = streams.stderr_is_terminal;
    Facts {
        stdout_is_terminal: streams.stdout_is_terminal,
        stderr_is_terminal: on_terminal,
        width: on_terminal.then(super::terminal::width).flatten(),
        ..Facts::of_environment()
    }
}

/// What the hub asks, with its memory and its threads.
fn outside(
    plan: &Plan,
    driver: &Driver<Wire>,
    (opened, learning): (Option<Opened>, Option<Learning>),
    descriptors: &limits::Descriptors,
    commands: usize,
    default_known_hosts: &str,
) -> io::Result<Outside> {
    let (results, done) = driver.mailbox();
    let to_loop = results.clone();
    let report = move |arrival| to_loop.send(Done::Arrived(arrival)).is_ok();
    let input = opened.map(|opened| Input::start(opened, commands, report));
    let state = match plan.connection.transport {
        Transport::Ssh => State::load(config::state_home()),
        Transport::Local | Transport::OpenSsh => State::default(),
    };
    let hosts = Hosts::new(default_known_hosts.to_owned());
    let work = (Pool::new(results, descriptors.threads), done);
    Ok(Outside::new(hosts, state, work, input.transpose()?, learning))
}

fn submit(now: std::time::Instant, engine: &mut Engine, ready: Vec<Ready>, hops: Vec<settings::Prepared>) {
    // What is said of many hosts is said once.
    let mut said = BTreeSet::new();
    for hop in hops {
        said.extend(hop.said());
        engine.add_hop(hop);
    }
    for (id, ready) in (0..).map(RequestId).zip(ready) {
        match ready {
            Ready::Ssh(prepared) => {
                said.extend(prepared.said());
                engine.submit_ssh(now, *prepared);
            }
            Ready::Local(request) => engine.submit(now, *request),
            Ready::OpenSsh(request, warning) => {
                said.extend(warning.map(|text| (Level::Warning, text)));
                engine.submit_openssh(now, *request);
            }
            Ready::Unusable(stage, message) => engine.tell(unusable(id, Failure::new(stage, message))),
        }
    }
    for (level, text) in said {
        engine.say(level, text);
    }
}

/// The end of a request whose configuration can't be used.
fn unusable(request: RequestId, failure: Failure) -> Event {
    let outcome = Outcome::untried(Status::Unreachable, Some(failure));
    Event::Finished { request, outcome }
}

fn listen(driver: &mut Driver<Wire>, on_terminal: bool) -> io::Result<()> {
    let mut signals =
        limits::not_ignored(&[Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP, Signal::USR1]);
    if on_terminal {
        signals.push(Signal::WINCH.as_raw());
    }
    driver.signals(&signals).map(drop)
}

/// Where output goes that is too large for a line of JSON; made only when there is some. Its name can't be guessed,
/// so that nobody takes it first.
fn directory() -> io::Result<std::path::PathBuf> {
    let mut random = [0; 8];
    aws_lc_rs::rand::fill(&mut random).map_err(|_| io::Error::other("no randomness"))?;
    let name = format!("mux-{:016x}", u64::from_ne_bytes(random));
    Ok(std::env::temp_dir().join(name))
}
